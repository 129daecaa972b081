/**
 * Signals and decisions that one process sends while another one parks the run: before, during and after. Each is taken once,
 * none is lost, and of two people who decide at once one is told that the other was first.
 */
import { Cairn } from "@cairn/core"
import { Effect, Either, Random } from "effect"
import { describe, expect, it } from "vitest"
import { databases, over, usePlaces } from "./internal/places.js"
import { startWorker } from "./internal/processes.js"
import { mailed } from "./internal/workflows.js"

const places = usePlaces()

/** Rounds a database; `CAIRN_MAIL_ROUNDS` for more of them. */
const rounds = Number(process.env["CAIRN_MAIL_ROUNDS"] ?? 100)

const pause = (most: number) => Effect.flatMap(Random.nextIntBetween(0, most), (ms) => Effect.sleep(ms))

/** Decides as soon as it is asked: not yet is no answer. */
const decide = (runId: string, by: string) =>
  Effect.zipRight(pause(20), Cairn.review(mailed, { runId }, { by, approve: { note: by } })).pipe(
    Effect.as("decided" as const),
    Effect.catchTag("DecisionRefused", ({ reason }) => Effect.succeed(reason)),
    Effect.repeat({ until: (said) => said !== "NotWaiting" }),
  )

const round = (n: number) =>
  Effect.gen(function* () {
    const runId = `mail-${n}`
    const handle = yield* Cairn.start(mailed, { napMs: yield* Random.nextIntBetween(0, 15) }, { runId })
    const send = (signalId: string, value: number) =>
      Effect.zipRight(pause(40), Cairn.signal(mailed, { runId, signalId }, "number", value))
    // Once the run is over nobody is asked any more.
    const over = Effect.as(Effect.either(handle.result), "over" as const)
    const [news, [ann, bob], end] = yield* Effect.all(
      [
        // Twice under one id is once.
        Effect.all([send("a", n), send("a", n), send("b", -n - 1), send("b", -n - 1)], { concurrency: "unbounded" }),
        Effect.all([Effect.raceFirst(decide(runId, "ann"), over), Effect.raceFirst(decide(runId, "bob"), over)], {
          concurrency: "unbounded",
        }),
        Effect.either(handle.result),
      ],
      { concurrency: "unbounded" },
    )
    return { news, ann, bob, end, n }
  })

describe.each(databases)("on %s", (where) => {
  it(`${rounds} runs take what is sent to them while they park, each once`, { timeout: 120_000 }, async () => {
    const place = places.make(where)
    const worker = startWorker({ store: place.address, log: place.log, name: "taker", leaseMs: 30_000 })
    try {
      const ended = await over(
        place,
        Effect.scoped(
          Effect.forEach(
            Array.from({ length: rounds }, (_, n) => n),
            round,
            { concurrency: 8 },
          ),
        ),
      )
      expect(ended).toHaveLength(rounds)
      for (const { ann, bob, end, n, news } of ended) {
        expect(news.filter(Boolean)).toHaveLength(2)
        const { by, numbers } = Either.getOrThrow(end)
        expect(numbers.toSorted((a, b) => a - b)).toEqual([-n - 1, n])
        const [winner, loser] = by === "ann" ? [ann, bob] : [bob, ann]
        expect(winner).toBe("decided")
        // Who was late is told so, or finds that it is over.
        expect(["AlreadyDecided", "Closed", "over"]).toContain(loser)
      }
    } finally {
      worker.process.kill("SIGKILL")
      await worker.ended
    }
  })
})
