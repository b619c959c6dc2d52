"""When certificates end, read from real ones that openssl has made."""

import shutil
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from consumer.kafka.certificates import first_end
from tests.support.certificates import Authority


def end_by_openssl(file: Path) -> float:
    openssl = shutil.which("openssl")
    assert openssl is not None
    told = subprocess.run([openssl, "x509", "-enddate", "-noout", "-in", file], capture_output=True, check=True)
    text = told.stdout.decode().strip().removeprefix("notAfter=").removesuffix(" GMT")
    return datetime.strptime(text, "%b %d %H:%M:%S %Y").replace(tzinfo=UTC).timestamp()


@pytest.mark.parametrize("days", ["1", "3650", "20000"])  # beyond 2049 the time is written in another way
def test_the_end_is_the_one_that_openssl_names(tmp_path: Path, days: str) -> None:
    authority = Authority(tmp_path, days=days)
    certificate = authority.certificate("worker")
    assert first_end(authority.cafile.read_bytes()) == end_by_openssl(authority.cafile)
    assert first_end(certificate.read_bytes()) == end_by_openssl(certificate)


def test_of_several_certificates_the_first_that_ends_counts(tmp_path: Path) -> None:
    early, late = Authority(tmp_path / "early", days="1").cafile, Authority(tmp_path / "late", days="9").cafile
    both = b"Some words\n" + late.read_bytes() + b"\n" + early.read_bytes()
    assert first_end(both) == end_by_openssl(early)


@pytest.mark.parametrize("cut", [0, 40, 400, 900])
def test_what_is_no_whole_certificate_has_no_end(tmp_path: Path, cut: int) -> None:
    text = Authority(tmp_path).cafile.read_bytes()
    assert first_end(text[:cut]) is None
    assert first_end(text[:cut] + b"\n-----END CERTIFICATE-----\n") is None
    assert first_end(b"-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----") is None
