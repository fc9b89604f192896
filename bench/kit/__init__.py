"""What all benches share: a broker as a process, load that checks every answer, figures of the machine, reports."""
