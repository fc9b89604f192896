"""An operators' token, and how it is shown."""

from broker.app import Caller

TOKEN = "turret_0pErAt0rs-0nly_dhGYUbs71iXnM2kq"
BEARER = {"authorization": f"Bearer {TOKEN}"}
OPERATOR = Caller(operator=True)
