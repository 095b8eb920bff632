"""Settings of `hubbub serve`: flags over environment over hubbub.toml over defaults."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError
from pydantic_core import PydanticCustomError
from pydantic_settings import (
    BaseSettings,
    InitSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)
from pydantic_settings import SettingsError as UnreadableVariable

from hubbub_aggregator.logs import LogFormat

PREFIX: Final = "HUBBUB_"


def _require_port(address: str) -> str:
    port = address.rpartition(":")[2]
    # gRPC would take it modulo 65,536.
    if int(port) > 65_535:
        raise PydanticCustomError("port", "A port is 0 to 65535, not {port}", {"port": port})
    return address


_Address = Annotated[
    str,
    Field(pattern=r"^(\[[^\]]+\]|[^:\[\]]+):[0-9]{1,5}$"),
    AfterValidator(_require_port),
]


def _on_loopback(address: Any) -> Any:
    """A port alone is one of this machine: what is there is for nobody else unless one says so."""
    if isinstance(address, int) or (
        isinstance(address, str) and address.isascii() and address.isdigit()
    ):
        return f"127.0.0.1:{address}"
    return address


def _nowhere(folder: Any) -> Any:
    """An empty path would be the folder that this was started in."""
    return None if folder == "" else folder


class SettingsError(Exception):
    """A setting that is unknown or out of range; the message names it."""


class PublishSettings(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)

    step: Annotated[int, Field(ge=1)] = 100
    """New reports that a snapshot waits for while its round is open."""


class Settings(BaseSettings):
    """Everything a person can set, with the defaults of one machine."""

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_nested_delimiter="__", extra="forbid", frozen=True
    )

    listen: _Address = "[::]:7443"
    """Where devices reach it: every address of the machine, IPv4 included."""
    private_listen: _Address = "127.0.0.1:7444"
    """Where estimates are read and rounds are closed."""
    private_tls: bool = False
    """TLS on the private listener too, for clients with a certificate from the keys folder's CA."""
    store: str = "sqlite:///hubbub.sqlite3"
    """A URL, or a plain path."""
    keys: Path = Path("keys")
    publish: PublishSettings = PublishSettings()
    threads: Annotated[int, Field(ge=1, le=1024)] = 64
    """Requests of many reports that are worked on at once."""
    workers: Annotated[int, Field(ge=0, le=256)] = 0
    """Processes that open batches of sealed reports; 0: the one that counts does it."""
    archive: Annotated[Path | None, BeforeValidator(_nowhere)] = None
    """Where a round's reports are written when it closes, of metrics that retain them; None, or
    nothing at all: nowhere."""
    take_plain: bool = False
    """Whether reports may come unsealed: for importing what was randomised elsewhere."""
    metrics_listen: Annotated[_Address, BeforeValidator(_on_loopback)] | None = None
    """Where Prometheus scrapes, over plain HTTP; None: nowhere."""
    lame_duck: Annotated[float, Field(ge=0, le=600)] = 1.0
    """Seconds after SIGTERM in which health says NOT_SERVING and calls are answered still."""
    log_format: LogFormat = LogFormat.TEXT


def load_settings(flags: Mapping[str, Any], config: Path | None) -> Settings:
    """Merge the sources. Raises SettingsError.

    `flags` holds only what was given; `config` is a TOML file with the same names.
    """
    file = {} if config is None else _read_toml(config)

    class Merged(Settings):
        @classmethod
        def settings_customise_sources(
            cls,
            settings_cls: type[BaseSettings],
            init_settings: PydanticBaseSettingsSource,
            env_settings: PydanticBaseSettingsSource,
            dotenv_settings: PydanticBaseSettingsSource,
            file_secret_settings: PydanticBaseSettingsSource,
        ) -> tuple[PydanticBaseSettingsSource, ...]:
            return init_settings, env_settings, InitSettingsSource(settings_cls, file)

    _require_known_variables()
    try:
        return Merged(**flags)
    except ValidationError as error:
        raise SettingsError("; ".join(_sentence(dict(found)) for found in error.errors())) from None
    except (UnreadableVariable, RecursionError):
        # Of all settings, this alone is more than a word.
        raise SettingsError(
            f"{PREFIX}PUBLISH in the environment is not JSON; set {PREFIX}PUBLISH__STEP instead"
        ) from None


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from None
    except RecursionError:
        raise SettingsError(f"{path} is nested too deeply") from None
    except ValueError:
        # Python's own, which tomllib lets through.
        raise SettingsError(f"{path} has a number with too many digits") from None


def _require_known_variables() -> None:
    """Refuse a misspelt variable, which would be ignored; nested names are checked later."""
    for variable in os.environ:
        name = variable.removeprefix(PREFIX).partition("__")[0].lower()
        if variable.startswith(PREFIX) and name not in Settings.model_fields:
            raise SettingsError(f"unknown setting {variable} in the environment")


def _sentence(error: dict[str, Any]) -> str:
    name = ".".join(map(str, error["loc"]))
    if error["type"] == "extra_forbidden":
        return f"unknown setting {name!r}"
    return f"setting {name!r}: {error['msg'][0].lower()}{error['msg'][1:]}"
