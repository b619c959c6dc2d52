"""An authority that makes certificates for the tests, with openssl, as long as a test lasts."""

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

_DAYS: Final = "2"


class Authority:
    """A certificate authority in a folder: `ca.crt`, and for each name `<name>.crt` and `<name>.key`, all PEM."""

    def __init__(self, folder: Path, *, days: str = _DAYS) -> None:
        self._folder = folder
        self._days = days
        self.cafile = folder / "ca.crt"
        folder.mkdir(parents=True, exist_ok=True)
        subject = ["-subj", "/CN=tests of SAFE", "-addext", "keyUsage=critical,keyCertSign"]
        self._openssl("req", "-x509", *_NEW_KEY, "-days", days, *subject, "-keyout", "ca.key", "-out", "ca.crt")

    def certificate(self, name: str, *, addresses: Sequence[str] = ("127.0.0.1",)) -> Path:
        """Return the certificate of a name, for clients, and for servers at these addresses."""
        file = self._folder / f"{name}.crt"
        if not file.exists():
            extensions = self._folder / f"{name}.ext"
            names = ",".join(["DNS:localhost", *(f"IP:{address}" for address in addresses)])
            extensions.write_text(f"subjectAltName={names}\n", encoding="utf-8")
            request = [*_NEW_KEY, "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.csr"]
            self._openssl("req", *request)
            signed_by = ["-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", self._days]
            self._openssl(
                "x509", "-req", "-in", f"{name}.csr", *signed_by, "-extfile", extensions.name, "-out", file.name
            )
        return file

    def key(self, name: str) -> Path:
        """Return the private key of a name, not encrypted."""
        self.certificate(name)
        return self._folder / f"{name}.key"

    def encrypted_key(self, name: str, passphrase: str) -> Path:
        """Return the same key, encrypted."""
        file = self._folder / f"{name}.encrypted.key"
        cipher = ["-topk8", "-v2", "aes-256-cbc", "-passout", f"pass:{passphrase}"]
        self._openssl("pkcs8", *cipher, "-in", self.key(name).name, "-out", file.name)
        return file

    def _openssl(self, *arguments: str) -> None:
        openssl = shutil.which("openssl")
        assert openssl is not None, "openssl makes the certificates of this test"
        subprocess.run([openssl, *arguments], cwd=self._folder, check=True, capture_output=True)


_NEW_KEY: Final = ("-newkey", "rsa:2048", "-noenc")
