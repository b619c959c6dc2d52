"""The endpoint of a model, OpenAI's chat completions or Azure's; texts go to the host that the user named, or nowhere.

Of all modules, only this one imports the client, which is an extra. No message has a word of a text.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final, NamedTuple
from urllib.parse import urlsplit

import openai
from openai.types.chat import ChatCompletion
from openai.types.shared_params import ResponseFormatJSONSchema

from consumer.errors import ConfigurationError, Transient
from consumer.judging.asking import Answered, FaultyReply
from consumer.judging.questions import REPLY_SCHEMA, RUBRIC
from consumer.settings import leading_elsewhere, model_key
from consumer.terminal import print_message
from consumer.text import named, visible

_RETRIES: Final = 5  # of a request, by the client: rate limits, time-outs, errors of the server
_MOST_TOKENS: Final = 1_000  # of a reply: a model that reasons needs more than the answer has
_FORMAT: Final[ResponseFormatJSONSchema] = {
    "type": "json_schema",
    "json_schema": {"name": "opinion", "strict": True, "schema": REPLY_SCHEMA},
}
_REFUSALS: Final = {
    400: "does the model know JSON schemas (response_format)?",
    401: "is the key in the environment the right one?",
    403: "may this key use the model?",
    404: "are --base-url and --model right?",
}


class Address(NamedTuple):
    """Where a model is asked; with `api_version` as Azure OpenAI wants it, where `model` names the deployment."""

    base_url: str
    model: str
    api_version: str | None
    timeout: float


class Endpoint:
    """A model that can be asked; made by connected()."""

    def __init__(self, client: openai.AsyncOpenAI, model: str) -> None:
        self._client, self._model = client, model

    async def ask(self, document: str) -> Answered:
        """Ask one question; raises FaultyReply, Transient if it goes on failing, ConfigurationError if it refuses."""
        try:
            completion = await self._client.chat.completions.create(
                model=self._model,
                messages=[{"role": "system", "content": RUBRIC}, {"role": "user", "content": document}],
                response_format=_FORMAT,
                max_completion_tokens=_MOST_TOKENS,
            )
        except openai.APIStatusError as error:
            raise _failure(error.status_code) from None
        except openai.APITimeoutError:
            raise Transient("the endpoint does not answer in time") from None
        except openai.APIConnectionError:
            raise Transient("the endpoint cannot be reached") from None
        except (openai.APIError, ValueError):
            raise FaultyReply("it is no chat completion") from None
        return _read(completion)


def _read(completion: ChatCompletion) -> Answered:
    tokens = completion.usage.total_tokens if completion.usage else 0
    choice = completion.choices[0] if completion.choices else None
    if choice is None or choice.finish_reason == "length":
        raise FaultyReply("it is no chat completion" if choice is None else "it was cut off", tokens)
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise FaultyReply("the model refused", tokens)
    return Answered(choice.message.content or "", tokens)


def _failure(status: int) -> ConfigurationError | Transient:
    if status in {408, 409, 429} or status >= 500:
        return Transient(f"the endpoint goes on failing (status {status})")
    if 300 <= status < 400:
        return ConfigurationError(
            f"the endpoint redirects (status {status}) to where nobody has allowed texts to be sent; give the address "
            "that it leads to as --base-url"
        )
    advice = _REFUSALS.get(status, "its own log says why")
    return ConfigurationError(f"the endpoint refused a question (status {status}): {advice}")


def check_consent(base_url: str, sent_to: str | None) -> None:
    """Raise ConfigurationError unless the user named the host of the endpoint, loopback too."""
    try:
        parts = urlsplit(base_url)
        parts.port  # noqa: B018  which is read only now
    except ValueError:
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None or parts.query:
        raise ConfigurationError("--base-url is not an address such as https://host/v1, without login and query")
    host = visible(parts.hostname)
    if sent_to is None:
        raise ConfigurationError(
            f"texts of outputs and narratives would be sent to {host}; if they may leave this machine, say so with "
            f"--send-texts-to {host} (--dry-run shows what would be sent)"
        )
    if sent_to.casefold() != parts.hostname.casefold():
        raise ConfigurationError(f"--send-texts-to names {visible(sent_to)}, but --base-url leads to {host}")
    if parts.scheme == "http" and parts.hostname not in {"localhost", "127.0.0.1", "::1"}:
        print_message(f"texts and key go to {host} unencrypted; give an address with https if there is one")


@asynccontextmanager
async def connected(address: Address) -> AsyncIterator[Endpoint]:
    """Give the endpoint; neither proxies, redirects nor addresses in the environment lead texts to another host.

    Raises ConfigurationError without a key.
    """
    key = model_key("OPENAI_API_KEY" if address.api_version is None else "AZURE_OPENAI_API_KEY")
    if ignored := leading_elsewhere():
        print_message(f"ignored: {named(ignored)}; texts go straight to --base-url")
    logging.getLogger("openai").setLevel(logging.WARNING)  # at "debug" it would log the texts
    http = openai.DefaultAsyncHttpxClient(follow_redirects=False, trust_env=False)
    client: openai.AsyncOpenAI
    if address.api_version is None:
        client = openai.AsyncOpenAI(
            base_url=address.base_url, api_key=key, timeout=address.timeout, max_retries=_RETRIES, http_client=http
        )
    else:
        client = openai.AsyncAzureOpenAI(
            azure_endpoint=address.base_url, api_key=key, api_version=address.api_version,
            timeout=address.timeout, max_retries=_RETRIES, http_client=http,
        )  # fmt: skip
    async with client:
        yield Endpoint(client, address.model)
