/**
 * Wake-ups by `listen`, on a connection of its own.
 *
 * - **N1** A wake-up only saves time: nothing depends on one, polling finds what no wake-up told.
 * - **N2** A dead connection is noticed: it is asked for an answer every few seconds, because a socket whose other side is
 *   gone looks like one on which nothing happens.
 * - **N3** After each new connection the listeners are woken once: what was sent in between is not sent again.
 */
import * as Clock from "effect/Clock"
import * as Deferred from "effect/Deferred"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Client, type ClientConfig } from "pg"
import { quoteIdentifier } from "./identifiers.js"
import { makeSockets, type Sockets } from "./sockets.js"

export interface WakeUpOptions {
  readonly client: ClientConfig
  readonly channel: string
  readonly probeMs: number
  /** Ends once there is a database at all: before that it is not this connection of which people are told. */
  readonly opened: Effect.Effect<void>
}

// The server is away in real time, whatever clock the fiber has.
const realClock = Clock.make()

const firstDelayMs = 100
const maxDelayMs = 5_000

// Many processes lose their connections together; they should not come back together.
const delayMs = (tries: number): number => (0.5 + Math.random()) * Math.min(maxDelayMs, firstDelayMs * 2 ** tries)

const asError = (thrown: unknown): Error => (thrown instanceof Error ? thrown : new Error(String(thrown)))

interface Line {
  readonly client: Client
  /** Fails when the connection has ended. */
  readonly lost: Deferred.Deferred<never, Error>
  readonly sockets: Sockets
}

/** Hears `null` when runs can be claimed, or the id of a worker that something concerns (D44). */
export type Told = (workerId: string | null) => void

const open = ({ channel, client: config }: WakeUpOptions, told: Told) =>
  Effect.gen(function* () {
    const lost = yield* Deferred.make<never, Error>()
    const line = yield* Effect.acquireRelease(
      Effect.sync((): Line => {
        const sockets = makeSockets()
        const client = new Client({ ...config, stream: sockets.stream })
        const end = (error?: Error) =>
          Deferred.unsafeDone(lost, Effect.fail(error ?? new Error("the server ended the connection")))
        client.on("error", end)
        client.on("end", () => end())
        client.on("notification", (message) => {
          if (message.channel === channel) told(message.payload ? message.payload : null)
        })
        return { client, lost, sockets }
      }),
      ({ client, sockets }) => sockets.ending(() => client.end()),
    )
    yield* Effect.tryPromise({ try: () => line.client.connect(), catch: asError })
    yield* ask(line, `listen ${quoteIdentifier(channel)}`)
    return line
  })

const ask = ({ client }: Line, text: string) => Effect.tryPromise({ try: () => client.query(text), catch: asError })

/** N2: ends, with the reason, when the connection does or gives no answer. */
const watch = (line: Line, probeMs: number): Effect.Effect<never, Error> =>
  Effect.raceFirst(Deferred.await(line.lost), Effect.sleep(probeMs)).pipe(
    Effect.zipRight(ask(line, "select 1")),
    Effect.forever,
  )

/**
 * Listens as long as the scope lives. Returns once the first connection stands, or could not be made.
 *
 * *Errors.* None: a connection that is lost, or cannot be had, is tried again for ever, and logged once.
 */
export const keepListening = (options: WakeUpOptions, told: Told): Effect.Effect<void, never, Scope.Scope> =>
  Effect.gen(function* () {
    const tried = yield* Deferred.make<void>()
    let tries = 0
    let isTold = false
    const once = Effect.gen(function* () {
      const line = yield* open(options, told)
      if (isTold) yield* Effect.logInfo("wake-ups by Postgres are back")
      tries = 0
      isTold = false
      // N3
      told(null)
      yield* Deferred.succeed(tried, undefined)
      return yield* watch(line, options.probeMs)
    }).pipe(
      Effect.scoped,
      Effect.catchAll((error) => {
        if (isTold) return Effect.void
        isTold = true
        const said = Effect.logWarning(
          "no wake-ups by Postgres until its connection is back; runs are found by polling",
        )
        return Effect.zipRight(options.opened, Effect.annotateLogs(said, "cause", error.message))
      }),
      Effect.ensuring(Deferred.succeed(tried, undefined)),
    )
    const again = Effect.suspend(() => Effect.sleep(delayMs(tries++)))
    yield* Effect.forkScoped(Effect.withClock(Effect.forever(Effect.zipRight(once, again)), realClock))
    yield* Deferred.await(tried)
  })
