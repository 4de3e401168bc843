"""A program that asks everything which another run would be told differently, and prints what it was told."""

import asyncio
import datetime
import glob
import json
import os
import pathlib
import random
import secrets
import sqlite3
import sys
import threading
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime as early_datetime
from os import urandom as early_urandom
from time import time as early_time


def say(where, **told):
    # At once: Python before 3.12.4 garbles what several threads write to a buffered sys.stdout.
    os.write(1, json.dumps({"where": where, **told}).encode() + b"\n")


def ask(where):
    say(where, of="time.time", value=time.time())
    say(where, of="time.time", value=early_time())
    say(where, of="time.time_ns", value=time.time_ns())
    say(where, of="time.monotonic", value=time.monotonic())
    say(where, of="time.perf_counter_ns", value=time.perf_counter_ns())
    say(where, of="datetime.datetime.now", value=datetime.datetime.now().isoformat())
    say(where, of="datetime.datetime.now", value=early_datetime.now().isoformat())
    say(where, of="datetime.datetime.now(tz)", value=datetime.datetime.now(datetime.UTC).isoformat())
    say(where, of="datetime.date.today", value=datetime.date.today().isoformat())
    say(where, of="random.random", value=random.random())
    say(where, of="os.urandom", value=early_urandom(7).hex())
    say(where, of="os.urandom", via="uuid.uuid4", value=str(uuid.uuid4()))
    say(where, of="os.urandom", via="secrets.token_hex", value=secrets.token_hex(6))
    say(where, of="os.getpid", value=os.getpid())
    say(where, of="os.environ", value={"MIXING": os.environ["MIXING"]})
    say(where, of="os.environ", value={"MIXING_NOT": os.getenv("MIXING_NOT")})
    generator = random.Random()
    say(where, of="random.seed", drawn=generator.random())
    for name in ("first.txt", "second.bin"):
        with open(name, "rb") as file:
            say(where, of="open", path=os.path.abspath(name), holds=file.read().hex())
    say(where, of="open", path=os.path.abspath("first.txt"), holds=pathlib.Path("first.txt").read_bytes().hex())
    say(where, of="os.listdir", path=os.path.abspath("folder"), names=os.listdir("folder"))
    say(where, of="os.scandir", path=os.path.abspath("folder"), names=[entry.name for entry in os.scandir("folder")])
    say(where, of="os.stat", path=os.path.abspath("first.txt"), size=os.stat("first.txt").st_size)
    say(where, of="os.stat", path=os.path.abspath("missing"), exists=os.path.exists("missing"))
    glob.glob("folder/*")


async def tasks():
    async def task(number):
        await asyncio.sleep(0.001 * (3 - number))
        ask(f"task {number}")
        await asyncio.sleep(0)

    await asyncio.gather(*(task(number) for number in range(3)))
    async with asyncio.TaskGroup() as group:
        for number in range(3, 5):
            group.create_task(task(number))


def main():
    ask("main")
    threads = [threading.Thread(target=ask, args=(f"thread {number}",)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(ask, ["pool 0", "pool 1", "pool 2"]))
    asyncio.run(tasks())
    say("main", of="sys.stdin", text=sys.stdin.readline() + sys.stdin.read())
    database = sqlite3.connect("data.db")
    say("main", of="sqlite3.connect", rows=database.execute("select a from t").fetchall())


main()
