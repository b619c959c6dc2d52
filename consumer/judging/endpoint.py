"""The endpoint of a model, OpenAI's chat completions or Azure's; texts go to the host that the user named, or nowhere.

Of all modules, only this one imports the client, which is an extra. No message has a word of a text.
"""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import msgspec
import openai
from openai.types.shared_params import ResponseFormatJSONSchema

from consumer.errors import ConfigurationError, Transient
from consumer.judging.address import Address
from consumer.judging.asking import NOT_JSON, Ask, FaultyReply
from consumer.judging.questions import REPLY_SCHEMA, RUBRIC
from consumer.settings import leading_elsewhere, model_key
from consumer.terminal import print_message
from consumer.text import named

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


class _Message(msgspec.Struct):
    content: str | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message
    finish_reason: str | None = None


class _Usage(msgspec.Struct):
    total_tokens: int | None = None


class _Completion(msgspec.Struct):
    """What is read of a completion: the client takes whatever comes, these types do not."""

    choices: list[_Choice]
    usage: _Usage | None = None


async def _ask(client: openai.AsyncOpenAI, model: str, document: str) -> tuple[str, int]:
    """Ask one question; raises FaultyReply, Transient if it goes on failing, ConfigurationError if it refuses."""
    try:
        response = await client.chat.completions.with_raw_response.create(
            model=model,
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
    return _read(response.content)


def _read(body: bytes) -> tuple[str, int]:
    try:
        completion = msgspec.json.decode(body, type=_Completion)
    except NOT_JSON:
        raise FaultyReply("it is no chat completion") from None
    tokens = (completion.usage and completion.usage.total_tokens) or 0
    choice = next(iter(completion.choices), None)
    if choice is None or choice.finish_reason == "length":
        raise FaultyReply("it is no chat completion" if choice is None else "it was cut off", tokens)
    if choice.message.refusal or choice.finish_reason == "content_filter":
        raise FaultyReply("the model refused", tokens)
    return choice.message.content or "", tokens


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


@asynccontextmanager
async def connected(address: Address) -> AsyncIterator[Ask]:
    """Give what asks the model; neither proxies, redirects nor addresses in the environment lead to another host.

    Raises ConfigurationError without a key.
    """
    is_azure = address.api_version is not None
    key = model_key("AZURE_OPENAI_API_KEY" if is_azure else "OPENAI_API_KEY")
    if ignored := leading_elsewhere():
        print_message(f"ignored: {named(ignored)}; texts go straight to --base-url")
    logging.getLogger("openai").setLevel(logging.WARNING)  # at "debug" it would log the texts
    http = openai.DefaultAsyncHttpxClient(follow_redirects=False, trust_env=False)
    make = (
        partial(openai.AsyncAzureOpenAI, azure_endpoint=address.base_url, api_version=address.api_version)
        if is_azure
        else partial(openai.AsyncOpenAI, base_url=address.base_url)
    )
    async with make(api_key=key, timeout=address.timeout, max_retries=_RETRIES, http_client=http) as client:
        yield partial(_ask, client, address.model)
