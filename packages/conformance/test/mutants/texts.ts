/** One fault each in outcomes (D9) and text (D10). */
import type { CheckpointDriver, EffectRecord, OutcomeRow, RunRow } from "@cairn/core"
import { Effect } from "effect"
import { editCommit, keyOf, mutant, rename, viewOpen, viewRun, type Mutant } from "./wrap.js"

/** Takes some of what an outcome must match from the intent itself. */
const trusting = (
  driver: CheckpointDriver,
  from: (effect: EffectRecord) => Partial<OutcomeRow>,
): Partial<CheckpointDriver> => ({
  recordOutcome: (outcome) =>
    Effect.flatMap(driver.findEffect(outcome), (effect) =>
      driver.recordOutcome(effect === null ? outcome : { ...outcome, ...from(effect) }),
    ),
})

const outcomes: ReadonlyArray<Mutant> = [
  mutant("recordOutcome ignores the key", "D9: an outcome that differs", (driver) =>
    trusting(driver, ({ idempotencyKey }) => ({ idempotencyKey })),
  ),
  mutant("recordOutcome ignores the payload hash", "D9: an outcome that differs", (driver) =>
    trusting(driver, ({ payloadHash }) => ({ payloadHash })),
  ),
  mutant("recordOutcome ignores the claim token", "D9: an outcome that differs", (driver) =>
    trusting(driver, ({ claimToken }) => ({ claimToken })),
  ),
  mutant("recordOutcome takes an outcome for another owner's sending", "D9: once a new owner", (driver) =>
    trusting(driver, ({ claimToken, sends }) => (sends > 1 ? { claimToken } : {})),
  ),
  mutant("recordOutcome ignores the generation", "D9: an outcome that differs", (driver) => ({
    recordOutcome: (outcome) => driver.recordOutcome({ ...outcome, generation: 0 }),
  })),
  mutant("recordOutcome compares hashes trimmed", "D9: an outcome that differs", (driver) => ({
    recordOutcome: (outcome) => driver.recordOutcome({ ...outcome, payloadHash: outcome.payloadHash.trim() }),
  })),
  mutant("recordOutcome tells every writer that it wrote", "D9: of twenty writers", (driver) => ({
    recordOutcome: (outcome) =>
      Effect.zipRight(
        driver.recordOutcome(outcome),
        Effect.map(driver.findEffect(outcome), (e) => e !== null),
      ),
  })),
  mutant("recordOutcome overwrites a settled intent", "D9: an intent that is settled", (driver) => {
    const last = new Map<string, OutcomeRow>()
    return {
      recordOutcome: (outcome) => {
        last.set(keyOf(outcome), outcome)
        return driver.recordOutcome(outcome)
      },
      ...viewOpen(driver, (rows, run) => {
        const over = last.get(keyOf(run))
        return over === undefined
          ? rows
          : { ...rows, effects: rows.effects.map((one) => ({ ...one, state: over.state, outcome: over.outcome })) }
      }),
    }
  }),
  mutant("recordOutcome asks for the fence", "D9: an owner that was replaced", (driver) => ({
    recordOutcome: (outcome) =>
      Effect.flatMap(driver.findRun(outcome.namespace, outcome.runId), (row) =>
        row?.claimToken === outcome.claimToken ? driver.recordOutcome(outcome) : Effect.succeed(false),
      ),
  })),
  mutant("recordOutcome drops the outcome", "D9: an outcome settles its intent", (driver) => ({
    recordOutcome: (outcome) => driver.recordOutcome({ ...outcome, outcome: null }),
  })),
  mutant("recordOutcome moves the run", "D9: an outcome settles its intent", (driver) => {
    const told = new Set<string>()
    return {
      ...viewRun(driver, (row) => (told.has(keyOf(row)) ? { ...row, inbox: row.inbox + 1 } : row)),
      recordOutcome: (outcome) => {
        told.add(keyOf(outcome))
        return driver.recordOutcome(outcome)
      },
    }
  }),
]

const renamed = (fault: string, caughtBy: string, names: Parameters<typeof rename>[1]): Mutant => ({
  fault,
  caughtBy,
  mutate: (driver) => rename(driver, names),
})

const lower = (text: string): string => text.toLowerCase()

const results = (driver: CheckpointDriver, edit: (text: string) => string): Partial<CheckpointDriver> =>
  editCommit(driver, (commit) => ({
    ...commit,
    steps: commit.steps.map((one) => ({ ...one, result: one.result === null ? null : edit(one.result) })),
  }))

/** A pattern where a name is meant: the namespace is searched with `like`. */
const likeNamespaces = (driver: CheckpointDriver): Partial<CheckpointDriver> => {
  const namespaces = new Set<string>()
  const matches = (pattern: string, text: string): boolean =>
    pattern.length === text.length && [...pattern].every((unit, n) => unit === "_" || unit === [...text][n])
  return {
    createRun: (run) => {
      namespaces.add(run.namespace)
      return driver.createRun(run)
    },
    claim: (request) =>
      Effect.map(
        Effect.forEach(
          [...namespaces].filter((one) => matches(request.namespace, one)),
          (namespace) => driver.claim({ ...request, namespace }),
        ),
        (rows) => rows.flat(),
      ),
  }
}

/** Runs under one key, namespace and run id joined by a slash; what comes back is told apart by what was asked. */
const joined = (driver: CheckpointDriver): CheckpointDriver => {
  const at = (of: { readonly namespace: string; readonly runId: string }): string => `${of.namespace}/${of.runId}`
  const lease = <A extends { readonly namespace: string; readonly runId: string }>(of: A): A => ({
    ...of,
    namespace: "all",
    runId: at(of),
  })
  const back =
    (namespace: string) =>
    (row: RunRow): RunRow => ({
      ...row,
      namespace,
      runId: row.runId.slice(namespace.length + 1),
    })
  return {
    ...driver,
    createRun: (run) =>
      Effect.map(driver.createRun(lease(run)), (made) => ({ ...made, run: back(run.namespace)(made.run) })),
    findRun: (namespace, runId) =>
      Effect.map(driver.findRun("all", at({ namespace, runId })), (row) =>
        row === null ? null : back(namespace)(row),
      ),
    load: (namespace, runId) =>
      Effect.map(driver.load("all", at({ namespace, runId })), (rows) =>
        rows === null ? null : { ...rows, run: back(namespace)(rows.run) },
      ),
    loadOpen: (namespace, runId, paths) => driver.loadOpen("all", at({ namespace, runId }), paths),
    claim: (request) =>
      Effect.map(
        driver.claim({
          ...request,
          namespace: "all",
          runIds: request.runIds?.map((runId) => at({ namespace: request.namespace, runId })) ?? null,
        }),
        (rows) => rows.map(back(request.namespace)),
      ),
    commit: (batch) => driver.commit(batch.map((commit) => ({ ...commit, lease: lease(commit.lease) }))),
  }
}

const texts: ReadonlyArray<Mutant> = [
  renamed("run ids are folded to lower case", "D10: run ids that differ", { runId: lower }),
  renamed("run ids are trimmed", "D10: run ids that differ", { runId: (text) => text.trim() || text }),
  renamed("run ids lose spaces at their end", "D10: run ids that differ", { runId: (text) => text.trimEnd() || text }),
  renamed("run ids are normalised (NFC)", "D10: run ids that differ", { runId: (text) => text.normalize("NFC") }),
  renamed("run ids are normalised (NFKC)", "D10: run ids that differ", { runId: (text) => text.normalize("NFKC") }),
  renamed("run ids are cut at 254 characters", "D10: run ids that differ", { runId: (text) => text.slice(0, 254) }),
  renamed("run ids that look like numbers become numbers", "D10: run ids that differ", {
    runId: (text) => (/^\d[\d.e]*$/.test(text) ? String(Number(text)) : text),
  }),
  renamed("namespaces are folded to lower case", "D10: namespaces that differ", { namespace: lower }),
  renamed("namespaces are trimmed", "D10: namespaces that differ", { namespace: (text) => text.trim() }),
  mutant("namespaces are patterns", "D10: namespaces that differ", likeNamespaces),
  { fault: "namespace and run id are joined by a slash", caughtBy: "D10: a namespace and a run id", mutate: joined },
  renamed("paths are folded to lower case", "D10: paths that differ", { path: lower }),
  renamed("paths are normalised", "D10: paths that differ", { path: (text) => text.normalize("NFC") }),
  renamed("worker ids are folded to lower case", "D10: worker ids that differ", { worker: lower }),
  renamed("paths lose what is beyond the first plane", "D10: any id, path", {
    path: (text) => text.replace(/[\u{10000}-\u{10ffff}]/gu, "?"),
  }),
  mutant("cursors are stored as Latin-1", "D10: any id, path", (driver) =>
    editCommit(driver, (commit) => ({
      ...commit,
      run: {
        ...commit.run,
        cursor: commit.run.cursor === null ? null : Buffer.from(commit.run.cursor, "latin1").toString("latin1"),
      },
    })),
  ),
  mutant("payloads are parsed and written again", "D10: any JSON text", (driver) =>
    results(driver, (text) => JSON.stringify(JSON.parse(text))),
  ),
  mutant("payloads lose escaped NULs", "D10: any JSON text", (driver) =>
    results(driver, (text) => text.replaceAll("\\u0000", "")),
  ),
  mutant("payloads are trimmed", "D10: any JSON text", (driver) => results(driver, (text) => text.trim())),
  mutant("payloads are cut at a megabyte", "D10: a payload of five megabytes", (driver) =>
    results(driver, (text) => text.slice(0, 1_000_000)),
  ),
]

export const textMutants: ReadonlyArray<Mutant> = [...outcomes, ...texts]
