/** Events on their way to a browser: frames that a client can come back to, and iterators that let go at once. */
import { Duration } from "effect"
import { afterEach, describe, expect, it, vi } from "vitest"
import { Events, type LiveEvent, type RunEvent } from "../../src/index.js"

const at = { at: new Date(0) }
const step = { _tag: "StepCompleted", kind: "step", unreadable: null, attempts: 1, durationMs: 2 } as const

const events: ReadonlyArray<RunEvent> = [
  {
    ...{ _tag: "AttemptEnded", seq: 1, isLastOfSeq: false, ...at, path: "a", attempt: 1, kind: "failed" },
    ...{ problem: "line\nbreak", retryAt: new Date(1_000) },
  } as RunEvent,
  // Stored on several lines, by a store that keeps text as it is.
  {
    ...step,
    seq: 1,
    isLastOfSeq: true,
    ...at,
    path: "a",
    result: new Map(),
    json: '{\r\n  "big": 12345678901234567890\n}',
  },
  { ...step, seq: 2, isLastOfSeq: true, ...at, path: "b", result: undefined, json: null },
  {
    ...{ _tag: "Finished", status: "failed", seq: 3, isLastOfSeq: true, ...at, step: "c", problem: "declined" },
    ...{ error: new Error("not for others"), json: '{"_tag":"Declined"}' },
  } as RunEvent,
]

const framesOf = async (given: AsyncIterable<RunEvent>): Promise<ReadonlyArray<string>> => {
  const frames: Array<string> = []
  for await (const frame of Events.toServerSentEvents(given)) frames.push(frame)
  return frames
}

async function* given() {
  yield* events
}

/** What an EventSource makes of a stream, by the HTML standard. */
const received = (text: string) => {
  let lastEventId = ""
  return text
    .split("\n\n")
    .filter((frame) => frame !== "")
    .map((frame) => {
      const fields: Record<string, Array<string>> = {}
      for (const line of frame.split("\n")) {
        const colon = line.indexOf(": ")
        ;(fields[line.slice(0, colon)] ??= []).push(line.slice(colon + 2))
      }
      lastEventId = fields["id"]?.[0] ?? lastEventId
      return { type: fields["event"]![0], lastEventId, data: JSON.parse(fields["data"]!.join("\n")) }
    })
}

describe("frames of Server-Sent Events", () => {
  it("name the event, bear the seq where it is complete, and hold values as they are stored", async () => {
    const frames = await framesOf(given())
    expect(frames[0]).toBe(
      'event: AttemptEnded\ndata: {"_tag":"AttemptEnded","seq":1,"isLastOfSeq":false,"at":"1970-01-01T00:00:00.000Z","path":"a","attempt":1,"kind":"failed","problem":"line\\nbreak","retryAt":"1970-01-01T00:00:01.000Z"}\n\n',
    )
    expect(frames[1]).toContain("12345678901234567890")
    const seen = received(frames.join(""))
    expect(seen.map(({ lastEventId, type }) => [type, lastEventId])).toEqual([
      ["AttemptEnded", ""],
      ["StepCompleted", "1"],
      ["StepCompleted", "2"],
      ["Finished", "3"],
    ])
    expect(Object.keys(seen[1]!.data.result)).toEqual(["big"])
    expect("result" in seen[2]!.data).toBe(false)
    expect(seen[3]!.data).toMatchObject({ status: "failed", problem: "declined", error: { _tag: "Declined" } })
    expect(frames.join("")).not.toContain("not for others")
  })

  it("end with the events, fail with them, and let go of them while the next one is awaited", async () => {
    let left = 0
    const never: AsyncIterable<RunEvent> = {
      [Symbol.asyncIterator]: () => ({
        next: () => new Promise(() => {}),
        return: async () => {
          left++
          return { done: true, value: undefined }
        },
      }),
    }
    const iterator = Events.toServerSentEvents(never)[Symbol.asyncIterator]()
    void iterator.next()
    expect(await iterator.return!()).toEqual({ done: true, value: undefined })
    expect(left).toBe(1)
    async function* failing() {
      yield events[0]!
      throw new Error("the store is away")
    }
    await expect(framesOf(failing())).rejects.toThrow("the store is away")
  })
})

describe("frames of live output", () => {
  it("hold what was emitted as JSON, and no id to come back to", async () => {
    const live: ReadonlyArray<LiveEvent> = [
      { _tag: "Began", path: "tell", attempt: 1 },
      { _tag: "Chunk", path: "tell", attempt: 1, index: 0, chunk: "two\nlines \u2028\ud800" },
      { _tag: "Skipped", count: 3 },
      { _tag: "Committed", path: "tell", attempt: 1, seq: 4 },
    ]
    async function* emitted() {
      yield* live
    }
    const frames: Array<string> = []
    for await (const frame of Events.toServerSentEvents(emitted())) frames.push(frame)
    const seen = received(frames.join(""))
    expect(seen.map(({ type }) => type)).toEqual(["Began", "Chunk", "Skipped", "Committed"])
    expect(seen.map(({ data }) => data)).toEqual(live)
    expect(seen.every(({ lastEventId }) => lastEventId === "")).toBe(true)
  })
})

describe("a connection on which nothing comes", () => {
  afterEach(() => void vi.useRealTimers())

  /** Events one by one, as the test gives them. */
  const slow = () => {
    const given: Array<(result: IteratorResult<RunEvent> | Error) => void> = []
    const iterable: AsyncIterable<RunEvent> = {
      [Symbol.asyncIterator]: () => ({
        next: () =>
          new Promise((resolve, reject) =>
            given.push((result) => (result instanceof Error ? reject(result) : resolve(result))),
          ),
      }),
    }
    return { iterable, give: (result: IteratorResult<RunEvent> | Error) => given.shift()!(result), asked: given }
  }

  it("is kept alive by comments, and no event is lost or asked for twice meanwhile", async () => {
    vi.useFakeTimers()
    const { asked, give, iterable } = slow()
    const frames = Events.toServerSentEvents(iterable, { keepAlive: "10 seconds" })[Symbol.asyncIterator]()
    for (let n = 0; n < 3; n++) {
      const comment = frames.next()
      await vi.advanceTimersByTimeAsync(10_000)
      expect(await comment).toEqual({ done: false, value: ": keep-alive\n\n" })
    }
    expect(asked).toHaveLength(1)
    // Two questions at once get two answers.
    const [first, second] = [frames.next(), frames.next()]
    give({ done: false, value: events[2]! })
    expect((await first).value).toContain('"path":"b"')
    await vi.advanceTimersByTimeAsync(0)
    give({ done: false, value: events[3]! })
    expect((await second).value).toContain("event: Finished")
    const late = frames.next()
    await vi.advanceTimersByTimeAsync(10_000)
    expect((await late).value).toBe(": keep-alive\n\n")
    give(new Error("the store is away"))
    await expect(frames.next()).rejects.toThrow("the store is away")
    expect(vi.getTimerCount()).toBe(0)
  })

  it("is told so each 15 seconds, unless somebody says never", async () => {
    vi.useFakeTimers()
    const usual = Events.toServerSentEvents(slow().iterable)[Symbol.asyncIterator]().next()
    await vi.advanceTimersByTimeAsync(15_000)
    expect((await usual).value).toBe(": keep-alive\n\n")
    let isAnswered = false
    const { give, iterable } = slow()
    const never = Events.toServerSentEvents(iterable, { keepAlive: Duration.infinity })[Symbol.asyncIterator]().next()
    void never.then(() => (isAnswered = true))
    await vi.advanceTimersByTimeAsync(86_400_000)
    expect([isAnswered, vi.getTimerCount()]).toEqual([false, 0])
    give({ done: true, value: undefined })
    expect(await never).toEqual({ done: true, value: undefined })
  })
})

describe("a Last-Event-ID", () => {
  it("is the seq to go on after, and nothing where it is none of ours", () => {
    expect(["0", "7", "9007199254740991", ["12"]].map(Events.fromLastEventId)).toEqual([0, 7, 9007199254740991, 12])
    const others = [undefined, null, "", " ", "-1", "1.5", "0x10", "1e3", "abc", "9007199254740993", []]
    expect(others.map(Events.fromLastEventId)).toEqual(others.map(() => 0))
  })
})
