"""The settings of a Kafka cluster for Spark's Java client, made of those for librdkafka.

Both clients read a topic: librdkafka its offsets, Spark its messages. A setting that only one of them would have is
refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from millrace.errors import SpecError

_SAME = frozenset(
    {
        *("bootstrap.servers", "security.protocol", "client.id", "client.rack", "client.dns.lookup"),
        *("socket.connection.setup.timeout.ms", "connections.max.idle.ms", "metadata.max.age.ms"),
        *("reconnect.backoff.ms", "reconnect.backoff.max.ms", "retry.backoff.ms", "retry.backoff.max.ms"),
    }
)
"""Settings with the same name and meaning in both clients."""

_SASL = frozenset({"sasl.mechanism", "sasl.username", "sasl.password"})
_OWN_CERTIFICATE = frozenset({"ssl.certificate.location", "ssl.key.location"})
_HOST_NAME = "ssl.endpoint.identification.algorithm"
_SSL = frozenset({"ssl.ca.location", *_OWN_CERTIFICATE, "ssl.key.password", _HOST_NAME})
_KNOWN = _SAME | _SASL | _SSL

_INSTEAD = {
    "sasl.mechanisms": "sasl.mechanism",
    "sasl.jaas.config": "sasl.mechanism, sasl.username and sasl.password",
    "ssl.ca.pem": "ssl.ca.location, the name of a PEM file",
    "ssl.truststore.location": "ssl.ca.location, the name of a PEM file",
    "ssl.certificate.pem": "ssl.certificate.location, the name of a PEM file",
    "ssl.key.pem": "ssl.key.location, the name of a PEM file",
    "ssl.keystore.location": "ssl.certificate.location and ssl.key.location, the names of PEM files",
}
"""Other ways to write what both clients can have -> the way of LAKEHOUSE_KAFKA."""

_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")

_LOGIN = {
    "PLAIN": "org.apache.kafka.common.security.plain.PlainLoginModule",
    "SCRAM-SHA-256": "org.apache.kafka.common.security.scram.ScramLoginModule",
    "SCRAM-SHA-512": "org.apache.kafka.common.security.scram.ScramLoginModule",
}

_QUOTED = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n", "\r": r"\r"})
"""How JAAS writes a character within quotes."""


def java_settings(cluster: str, conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings of the Java client for a cluster, with the secrets.

    Args:
        cluster: the name of the cluster in LAKEHOUSE_KAFKA.
        conf: its settings there, with librdkafka's names.

    >>> java_settings("main", {"bootstrap.servers": "broker:9092"})
    {'bootstrap.servers': 'broker:9092', 'security.protocol': 'PLAINTEXT'}

    Raises:
        SpecError: a setting is one that the Java client cannot have, has no effect beside the others, or names a file
            that cannot be used.
    """
    for name in conf.keys() & _INSTEAD.keys():
        raise _refusal(cluster, f"has {name}", f"Write {_INSTEAD[name]}.")
    if unknown := _names(conf.keys() - _KNOWN):
        raise _refusal(
            cluster,
            f"has {unknown}, which cannot reach both of its clients, librdkafka and Spark's",
            f"Remove it. What both can have: {_names(_KNOWN)}.",
        )
    protocol = conf.get("security.protocol", "PLAINTEXT").upper()
    if protocol not in _PROTOCOLS:
        raise _refusal(cluster, f"has security.protocol {protocol}", f"Write one of {', '.join(_PROTOCOLS)}.")
    layers = protocol.split("_")
    for layer, settings in (("SASL", _SASL), ("SSL", _SSL)):
        if layer not in layers and (idle := _names(conf.keys() & settings)):
            raise _refusal(
                cluster,
                f"has {idle}, which security.protocol {protocol} does not use",
                f"Set security.protocol to one with {layer}, such as SASL_SSL, or remove {idle}.",
            )
    same = {name: conf[name] for name in sorted(_SAME & conf.keys())} | {"security.protocol": protocol}
    return {**same, **(_login(cluster, conf) if "SASL" in layers else {}), **_certificates(cluster, conf)}


def _login(cluster: str, conf: Mapping[str, str]) -> dict[str, str]:
    mechanism = conf.get("sasl.mechanism", "GSSAPI, the default")
    if mechanism not in _LOGIN:
        ways_out = f"Write one of {', '.join(_LOGIN)}. Millrace supports neither Kerberos nor OAuth."
        raise _refusal(cluster, f"has sasl.mechanism {mechanism}", ways_out)
    if lacking := _names(name for name in ("sasl.username", "sasl.password") if not conf.get(name)):
        raise _refusal(cluster, f"has sasl.mechanism {mechanism}, but no {lacking}", f"Add {lacking}.")
    user, password = (conf[name].translate(_QUOTED) for name in ("sasl.username", "sasl.password"))
    login = f'{_LOGIN[mechanism]} required username="{user}" password="{password}";'
    return {"sasl.mechanism": mechanism, "sasl.jaas.config": login}


def _certificates(cluster: str, conf: Mapping[str, str]) -> dict[str, str]:
    if conf.get(_HOST_NAME, "https") != "https":
        raise _refusal(
            cluster,
            f"has {_HOST_NAME} {conf[_HOST_NAME]}, so that any host with a certificate could pose as a broker",
            "Remove it, and reach the brokers by the names that are in their certificates.",
        )
    own = conf.keys() & {*_OWN_CERTIFICATE, "ssl.key.password"}
    if own and (lacking := _names(_OWN_CERTIFICATE - own)):
        raise _refusal(cluster, f"has {_names(own)}, but no {lacking}", f"Add {lacking}; both may name one PEM file.")
    if not own and "ssl.ca.location" not in conf:
        return {}
    from millrace.control.kafka.certificates import java_certificates  # takes a tenth of a second

    try:
        return java_certificates(conf)
    except ValueError as error:
        raise _refusal(
            cluster,
            f"has files that cannot be used: {error}",
            "Name PEM files that planner and driver can read. A chain begins with the client's own certificate; the "
            "password of an encrypted key is ssl.key.password.",
        ) from error


def _names(settings: Iterable[str]) -> str:
    return ", ".join(sorted(settings))


def _refusal(cluster: str, cause: str, way_out: str) -> SpecError:
    return SpecError(f"LAKEHOUSE_KAFKA: the cluster {cluster} {cause}", way_out)
