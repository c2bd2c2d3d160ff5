"""Settings that send ``gs://`` to a server on the loopback address.

Google's store speaks the same protocol as S3 in all that matters here (its XML interface).
"""

from __future__ import annotations

import json


def gcs_environment(address: str) -> dict[str, str]:
    """Return the environment with which ``gs://`` URLs go to an address, without credentials."""
    key = {
        "gcs_base_url": address,
        "disable_oauth": True,
        "client_email": "",
        "private_key": "",
        "private_key_id": "",
    }
    return {"GOOGLE_SERVICE_ACCOUNT_KEY": json.dumps(key)}
