"""Models, and framework profiles."""

from typing import Any, List, Mapping, Optional, Union

from .errors import UsageError
from .library import Handle, create, json_text, library, listed, optional, text, warn


class Model:
    """A model: a preset's name (models()) or a Hugging Face config.json's path.

    Raises FileError or InvalidInput.
    """

    def __init__(self, name_or_path: str) -> None:
        self._take("linkwise_model_read", text(name_or_path, "a preset's name or a config.json's path"))

    @classmethod
    def from_config(cls, config: Mapping[str, Any], name: Optional[str] = None) -> "Model":
        """From a config.json's fields, as transformers' config.to_dict() gives them."""
        if not isinstance(config, Mapping):
            raise UsageError(f"expected a dict, as config.to_dict() gives it, found {config!r}")
        model = cls.__new__(cls)
        model._take("linkwise_model_parse", json_text(dict(config), "model", allow_nan=True), optional(name))
        return model

    @classmethod
    def of(cls, what: Union["Model", str]) -> "Model":
        """The model itself, or that of a name or path."""
        return what if isinstance(what, Model) else cls(what)

    def _take(self, function: str, *arguments: Optional[bytes]) -> None:
        self.pointer, notes = create("model", function, *arguments)
        warn(notes, stacklevel=4)

    @property
    def name(self) -> str:
        return str(library().linkwise_model_name(self.pointer).decode(errors="replace"))

    @property
    def parameters(self) -> float:
        """Of the whole model."""
        return float(library().linkwise_model_parameters(self.pointer))

    def __repr__(self) -> str:
        return f"<linkwise.Model {self.name}: {self.parameters / 1e9:.2f} billion parameters>"


class Profile:
    """What a framework keeps, overlaps and offers: a shipped name or a file; None is the usual."""

    def __init__(self, name_or_path: Optional[str]) -> None:
        self.pointer: Optional[Handle] = None
        if name_or_path is not None:
            self.pointer, notes = create("profile", "linkwise_profile_read", text(name_or_path, "a profile's name or path"))
            warn(notes, stacklevel=4)


def models() -> List[str]:
    """Names of the presets."""
    return listed("linkwise_model_preset_at")
