"""What the fuzzers found."""

CALLS = "broker/actors/calls.py"
FRAMES = "gateways/frames.py"

MUTANTS = (
    (
        "cli.environment-text",
        "gateways/configure.py",
        "        if not _is_text(text):\n",
        "        if False:\n",
    ),
    (
        "cli.hostile",
        "gateways/configure.py",
        'not re.fullmatch("[0-9]{1,5}", port)',
        "not port.isdigit()",
    ),
    (
        "cli.hostile",
        "gateways/configure.py",
        "    except (ValueError, RecursionError) as error:  # no TOML",
        "    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:  # no TOML",
    ),
    (
        "http.host-is-a-name",
        "gateways/wrappers.py",
        'not (":" in parts.hostname or _NAME.fullmatch(parts.hostname))',
        "False",
    ),
    (
        "http.left-is-no-fault",
        "gateways/cycle.py",
        "if http.our_state is h11.SEND_RESPONSE and self._status:",
        "if http.our_state is h11.SEND_RESPONSE:",
    ),
    (
        "store.hostile",
        CALLS,
        "    except UNREADABLE as error:\n",
        "    except ZeroDivisionError as error:\n",
    ),
    (
        "ws.close-amid-fragments",
        FRAMES,
        "if self._message is not None and data[0] & 0x0F == Opcode.CLOSE:",
        "if False:",
    ),
)
