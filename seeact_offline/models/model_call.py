"""Calls a model: passes the ideal answer to models that opt in, and turns everything that a model raises into a failed call."""

from __future__ import annotations

from seeact_offline.records import CallError, Completion, Model, Request, SeeActError

WAITING = "waiting_for_batch"
"""The failure of a call whose reply is still to come in a file of a batch."""
ENOUGH = 10
"""Calls of which a share means something."""


async def call_model(model: Model, request: Request, ideal: str) -> Completion:
    """Returns the model's reply. A model that takes it is given `ideal`, the right answer in its prompt's words.

    Raises what the model raises on purpose (SeeActError). Any other error of it becomes CallError `model_error`, and a return
    value that is no `Completion` with a text CallError `api_error`: models are other people's code.
    """
    try:
        completion: object = await model.complete_with_ideal(request, ideal)
    except SeeActError:
        raise
    # a user's model may raise anything: it is a failure of this step
    except Exception as error:
        from seeact_offline.models.failures import scrubbed

        raise CallError("model_error", scrubbed(f"{type(error).__name__}: {error}")) from error
    if not isinstance(completion, Completion):
        raise CallError("api_error", f"expected a Completion from the model, got a {type(completion).__name__}")
    if not isinstance(completion.text, str):
        raise CallError("api_error", f"expected a text from the model, got a {type(completion.text).__name__}")
    return completion
