"""What went wrong when a connection over TLS was made: OpenSSL's verdict in plain words, with the next step."""

import ssl

_ISSUER = frozenset({2, 7, 18, 19, 20, 21})
_NAME = frozenset({62, 64})
_EXPIRED, _TOO_EARLY = 10, 9
_NOT_TLS = frozenset({"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE", "UNKNOWN_PROTOCOL"})
_ALERTS = {
    "TLSV1_ALERT_UNKNOWN_CA": "it is of an authority that is not known there",
    "SSLV3_ALERT_CERTIFICATE_EXPIRED": "it has expired",
    "SSLV3_ALERT_CERTIFICATE_REVOKED": "it was revoked",
    "SSLV3_ALERT_CERTIFICATE_UNKNOWN": "it is not known there",
    "SSLV3_ALERT_BAD_CERTIFICATE": "it is damaged, or not for clients",
    "SSLV3_ALERT_UNSUPPORTED_CERTIFICATE": "it is not for clients",
    "TLSV1_ALERT_DECRYPT_ERROR": "its key does not fit",
}


def fault_of(error: BaseException, address: str, ca_file: object = None, *, option: str = "--ca-file") -> str | None:
    """What is wrong between us and a server; None if it has nothing to do with TLS.

    `option` is how the file with its authority is named.
    """
    found: BaseException | None = error
    while found is not None and not isinstance(found, ssl.SSLError):
        found = found.__cause__ or found.__context__
    if found is None:
        return None
    if isinstance(found, ssl.SSLCertVerificationError):
        return _verdict(found, address, ca_file, option)
    if found.reason in _NOT_TLS:
        return f"{address} does not speak TLS. Begin the address with http://, or start the server with --tls-cert"
    if found.reason == "TLSV13_ALERT_CERTIFICATE_REQUIRED":
        return f"{address} wants a certificate. Give one with --client-cert and --client-key"
    if (reason := _ALERTS.get(found.reason or "")) is not None:
        return f"{address} does not take our certificate: {reason}. Give another with --client-cert and --client-key"
    return f"no TLS connection to {address} ({found.reason or found})"


def _verdict(error: ssl.SSLCertVerificationError, address: str, ca_file: object, option: str) -> str:
    name = f"the certificate of {address}"
    match error.verify_code:
        case code if code == _EXPIRED:
            return f"{name} has expired. Renew it there"
        case code if code == _TOO_EARLY:
            return f"{name} is not valid yet. Compare the clocks of both machines"
        case code if code in _NAME:
            return f"{name} is for another name. Use a name that it has, or have it made for this one"
        case code if code in _ISSUER:
            known = f"is not of an authority in {ca_file}" if ca_file else "is of an authority that is not known here"
            return f"{name} {known}. Name the file with its authority's certificate with {option}"
        case _:
            return f"{name} is not accepted ({error.verify_message})"
