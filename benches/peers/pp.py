"""The Python port pp-coding-agent, in its own environment."""

import asyncio
import os
import sys

from stopwatch import digest_of_body, digest_of_file, main, message, the_only_file


def manager():
    from pi_coding_agent.core.session_manager import SessionManager

    return SessionManager


def open_session(request, clock):
    manager_class = manager()
    with clock:
        session = manager_class.open(request["file"])
    return {"leaf": session.get_leaf_id()}


def context(request, clock):
    manager_class = manager()
    with clock:
        made = manager_class.open(request["file"]).build_session_context()
    return {"messages": len(made.messages)}


def listed(request, clock):
    manager_class = manager()
    with clock:
        infos = asyncio.run(manager_class.list_all(request.get("folder")))
    return {"sessions": len(infos), "messages": sum(info.message_count for info in infos)}


def append(request, clock):
    from pi_ai.types import AssistantMessage, TextContent, UserMessage

    session = manager().create("/code/app", request["folder"])

    def built(number):
        one = message(number)
        text = TextContent(type="text", text=one["content"][0]["text"])
        return UserMessage(role="user", content=[text], timestamp=one["timestamp"])

    session.append_message(AssistantMessage(content=[], timestamp=1))
    messages = [built(n) for n in range(request["times"])]
    with clock:
        for one in messages:
            session.append_message(one)
    return digest_of_file(session.get_session_file(), "user")


def fork(request, clock):
    manager_class = manager()
    with clock:
        copy = manager_class.fork_from(request["file"], "/code/other", request["folder"])
    answer = {"leaf": copy.get_leaf_id()}
    if request.get("check"):
        answer["entries"] = digest_of_body(the_only_file(request["folder"]))["entries"]
    return answer


def find(request, clock):
    manager_class = manager()
    with clock:
        session = manager_class.continue_recent(request["cwd"], request["folder"])
    return {"file": os.path.basename(session.get_session_file())}


WORKS = {
    "open": open_session,
    "context": context,
    "list": listed,
    "append": append,
    "fork": fork,
    "recent": find,
}

if __name__ == "__main__":
    sys.exit(main(WORKS))
