/** One fault each in creating (D1) and committing (D2 to D5). */
import { StoreError, type CommitResult, type CommitRows, type RunRow } from "@cairn/core"
import { Clock, Effect } from "effect"
import { editCommit, keyOf, mutant, viewLoad, viewOpen, viewRun, type Mutant } from "./wrap.js"

const creating: ReadonlyArray<Mutant> = [
  mutant("createRun looks first and inserts later", "D1: of twenty creators", (driver) => ({
    createRun: (run) =>
      Effect.gen(function* () {
        const found = yield* driver.findRun(run.namespace, run.runId)
        yield* Effect.yieldNow()
        const made = yield* driver.createRun(run)
        return found === null ? { ...made, created: true } : made
      }),
  })),
  mutant("createRun gives each creator what it gave itself", "D1: of twenty creators", (driver) => ({
    createRun: (run) => Effect.map(driver.createRun(run), (made) => ({ ...made, run: { ...made.run, ...run } })),
  })),
  mutant("createRun starts at fence 1", "D1: a new run is pending", (driver) => ({
    createRun: (run) => Effect.map(driver.createRun(run), (made) => ({ ...made, run: { ...made.run, fence: 1 } })),
  })),
  mutant("createRun forgets the parent", "D1: a new run is pending", (driver) => ({
    createRun: (run) => driver.createRun({ ...run, parentRunId: null, parentPath: null }),
  })),
  mutant("createRun starts at once what is to begin later", "D1: a new run that is to begin", (driver) => ({
    createRun: (run) => driver.createRun({ ...run, wakeAt: null }),
  })),
  mutant("createRuns starts at once what is to begin later", "D1: a new run that is to begin", (driver) => ({
    createRuns: (runs) => driver.createRuns(runs.map((run) => ({ ...run, wakeAt: null }))),
  })),
  mutant("createRun overwrites an existing run", "D1: creating a run again", (driver) => {
    const inputs = new Map<string, string | null>()
    const view = (row: RunRow): RunRow => ({ ...row, input: inputs.get(keyOf(row)) ?? row.input })
    const viewed = viewRun(driver, view)
    return {
      ...viewed,
      createRun: (run) => {
        inputs.set(keyOf(run), run.input)
        return Effect.map(driver.createRun(run), (made) => ({ ...made, run: view(made.run) }))
      },
    }
  }),
  mutant("createRun resets seq of an existing run in its answer", "D1: creating a run again", (driver) => ({
    createRun: (run) => Effect.map(driver.createRun(run), (made) => ({ ...made, run: { ...made.run, seq: 0 } })),
  })),
  mutant("createRuns gives what it created before what was there", "D1: of many runs", (driver) => ({
    createRuns: (runs) =>
      Effect.map(driver.createRuns(runs), (made) => made.toSorted((a, b) => Number(b.created) - Number(a.created))),
  })),
  mutant("createRuns says of every run that it created it", "D1: of many runs", (driver) => ({
    createRuns: (runs) => Effect.map(driver.createRuns(runs), (made) => made.map((one) => ({ ...one, created: true }))),
  })),
  mutant("the last one of an id in a batch creates", "D1: of two runs of one id in one batch", (driver) => ({
    createRuns: (runs) => Effect.map(driver.createRuns(runs.toReversed()), (made) => made.toReversed()),
  })),
  mutant("createRuns drops what stands in another batch", "D1: batches that overlap", (driver) => {
    const seen = new Set<string>()
    return {
      createRuns: (runs) =>
        Effect.gen(function* () {
          const first = runs.filter((run) => !seen.has(keyOf(run)))
          const again = runs.length > 20 && first.length < runs.length
          for (const run of runs) seen.add(keyOf(run))
          const made = yield* driver.createRuns(runs)
          return again ? made.map((one) => ({ ...one, created: true })) : made
        }),
    }
  }),
  mutant("createRun ignores the namespace", "D1: one run id in two namespaces", (driver) => {
    const homes = new Map<string, string>()
    return {
      createRun: (run) => {
        const namespace = homes.get(run.runId) ?? run.namespace
        homes.set(run.runId, namespace)
        return driver.createRun({ ...run, namespace })
      },
    }
  }),
]

const atomic: ReadonlyArray<Mutant> = [
  mutant("commit shows the run row before its steps", "D2: whoever reads beside", (driver) => {
    const hidden = new Set<string>()
    return {
      ...viewLoad(driver, (rows) => ({ ...rows, steps: rows.steps.filter(({ path }) => !hidden.has(path)) })),
      commit: (batch) =>
        Effect.gen(function* () {
          for (const { path } of batch.flatMap(({ steps }) => steps)) hidden.add(path)
          const results = yield* driver.commit(batch)
          for (let turn = 0; turn < 4; turn++) yield* Effect.yieldNow()
          hidden.clear()
          return results
        }),
    }
  }),
  mutant("commit shows intents after attempts", "D2: whoever reads beside", (driver) => {
    const hidden = new Set<string>()
    return {
      ...viewOpen(driver, (rows) => ({ ...rows, effects: rows.effects.filter(({ path }) => !hidden.has(path)) })),
      commit: (batch) =>
        Effect.gen(function* () {
          for (const { path } of batch.flatMap(({ effects }) => effects)) hidden.add(path)
          const results = yield* driver.commit(batch)
          for (let turn = 0; turn < 4; turn++) yield* Effect.yieldNow()
          hidden.clear()
          return results
        }),
    }
  }),
  mutant("commit shows intents and attempts after the run row", "D2: whoever reads beside", (driver) => {
    const hidden = new Set<string>()
    return {
      ...viewOpen(driver, (rows) => ({
        effects: rows.effects.filter(({ path }) => !hidden.has(path)),
        attempts: rows.attempts.filter(({ path }) => !hidden.has(path)),
      })),
      commit: (batch) =>
        Effect.gen(function* () {
          for (const { path } of batch.flatMap(({ effects }) => effects)) hidden.add(path)
          const results = yield* driver.commit(batch)
          for (let turn = 0; turn < 4; turn++) yield* Effect.yieldNow()
          hidden.clear()
          return results
        }),
    }
  }),
  mutant("commit drops attempts", "D2: a commit writes run row", (driver) =>
    editCommit(driver, (commit) => ({ ...commit, attempts: [] })),
  ),
  mutant("commit drops when the next attempt is due", "D2: a commit writes run row", (driver) =>
    editCommit(driver, (commit) => ({
      ...commit,
      attempts: commit.attempts.map((one) => ({ ...one, retryInMs: null })),
    })),
  ),
  mutant("commit forgets the cursor", "D2: a commit writes run row", (driver) =>
    editCommit(driver, (commit) => ({ ...commit, run: { ...commit.run, cursor: null } })),
  ),
  mutant("commit keeps an earlier generation's row for all", "D2: an intent that is written again", (driver) =>
    editCommit(driver, (commit) => ({ ...commit, effects: commit.effects.map((one) => ({ ...one, generation: 0 })) })),
  ),
  mutant("commit stamps the first time of an intent anew", "D2: an intent that is written again", (driver) => {
    const times = new Map<string, number>()
    const key = (path: string, generation: number) => `${generation} ${path}`
    return {
      ...viewOpen(driver, (rows) => ({
        ...rows,
        effects: rows.effects.map((one) => ({
          ...one,
          intentAt: times.get(key(one.path, one.generation)) ?? one.intentAt,
        })),
      })),
      commit: (batch) =>
        Effect.gen(function* () {
          const now = yield* Clock.currentTimeMillis
          for (const one of batch.flatMap(({ effects }) => effects)) times.set(key(one.path, one.generation), now)
          return yield* driver.commit(batch)
        }),
    }
  }),
]

const guards: ReadonlyArray<Mutant> = [
  mutant("commit ignores the fence", "D3: a commit with another fence", (driver) =>
    editCommit(driver, (commit, row) => ({ ...commit, lease: { ...commit.lease, fence: row.fence } })),
  ),
  mutant("commit takes any fence from its own up", "D3: a commit with another fence", (driver) =>
    editCommit(driver, (commit, row) => ({
      ...commit,
      lease: { ...commit.lease, fence: Math.min(commit.lease.fence, row.fence) },
    })),
  ),
  mutant("commit ignores the claim token", "D3: a commit with another claim token", (driver) =>
    editCommit(driver, (commit, row) => ({
      ...commit,
      lease: { ...commit.lease, claimToken: row.claimToken ?? commit.lease.claimToken },
    })),
  ),
  mutant("commit compares claim tokens without case", "D3: a commit with another claim token", (driver) =>
    editCommit(driver, (commit, row) => {
      const alike = row.claimToken?.toLowerCase() === commit.lease.claimToken.toLowerCase()
      return alike ? { ...commit, lease: { ...commit.lease, claimToken: row.claimToken ?? "" } } : commit
    }),
  ),
  mutant("commit compares claim tokens trimmed", "D3: a commit with another claim token", (driver) =>
    editCommit(driver, (commit) => ({
      ...commit,
      lease: { ...commit.lease, claimToken: commit.lease.claimToken.trim() },
    })),
  ),
  mutant("a refusal does not say what stands against it", "D3: an owner that was replaced", (driver) => ({
    commit: (batch) =>
      Effect.map(driver.commit(batch), (results) =>
        results.map((result): CommitResult => (result._tag === "Refused" ? { _tag: "Refused", run: null } : result)),
      ),
  })),
  mutant("a refused commit still writes its steps", "D4: a commit on an older seq", (driver) => {
    const leaked = new Map<string, CommitRows>()
    return {
      commit: (batch) =>
        Effect.map(driver.commit(batch), (results) => {
          for (const [n, result] of results.entries()) {
            const commit = batch[n]!
            if (result._tag === "Refused") leaked.set(keyOf(commit.lease), commit)
          }
          return results
        }),
      ...viewLoad(driver, (rows) => ({
        ...rows,
        steps: [
          ...rows.steps,
          ...(leaked.get(keyOf(rows.run))?.steps ?? []).map((one) => ({ ...one, committedAt: 0 })),
        ],
      })),
    }
  }),
  mutant("commit does not release", "D3: a lease that was released", (driver) =>
    editCommit(driver, (commit) => ({ ...commit, run: { ...commit.run, release: false } })),
  ),
  mutant("commit asks for a live lease", "D3: an owner whose lease has ended", (driver) => {
    const untils = new Map<string, number>()
    return {
      beat: (workerId, leaseMs) =>
        Effect.tap(driver.beat(workerId, leaseMs), ({ until }) => Effect.sync(() => untils.set(workerId, until))),
      commit: (batch) =>
        Effect.flatMap(Clock.currentTimeMillis, (now) => {
          const edited = editCommit(driver, (commit, row) =>
            (untils.get(row.leaseOwner ?? "") ?? 0) <= now ? { ...commit, base: -1 } : commit,
          )
          return edited.commit!(batch)
        }),
    }
  }),
  mutant("commit finds runs by id alone", "D3: a lease counts for its own run", (driver) => {
    const homes = new Map<string, string>()
    return {
      claim: (request) =>
        Effect.tap(driver.claim(request), (rows) =>
          Effect.sync(() => {
            for (const row of rows) homes.set(row.claimToken ?? "", row.namespace)
          }),
        ),
      commit: (batch) =>
        driver.commit(
          batch.map((commit) => ({
            ...commit,
            lease: { ...commit.lease, namespace: homes.get(commit.lease.claimToken) ?? commit.lease.namespace },
          })),
        ),
    }
  }),
  mutant("commit ignores seq", "D4: a commit on an older seq", (driver) =>
    editCommit(driver, (commit, row) => ({ ...commit, base: row.seq, seq: row.seq + 1 })),
  ),
  mutant("commit takes an older base while seq grows", "D4: a commit on an older seq", (driver) =>
    editCommit(driver, (commit, row) => ({ ...commit, base: Math.max(commit.base, row.seq) })),
  ),
  mutant("commit skips", "D4: a commit on a seq that was never committed", (driver) =>
    editCommit(driver, (commit, row) => ({ ...commit, base: Math.min(commit.base, row.seq) })),
  ),
  mutant("commit repeats the last seq", "D4: a commit that would not raise seq", (driver) =>
    editCommit(driver, (commit) => ({ ...commit, seq: Math.max(commit.seq, commit.base + 1) })),
  ),
  mutant("commit raises seq by one whatever it is told", "D4: one commit may carry several", (driver) =>
    editCommit(driver, (commit) => (commit.seq > commit.base ? { ...commit, seq: commit.base + 1 } : commit)),
  ),
]

const refusedAll = (batch: ReadonlyArray<CommitRows>): ReadonlyArray<CommitResult> =>
  batch.map(() => ({ _tag: "Refused", run: null }))

const batches: ReadonlyArray<Mutant> = [
  mutant("a batch is all or nothing", "D5: a refused commit in a batch", (driver) => ({
    commit: (batch) =>
      Effect.gen(function* () {
        for (const { lease, base } of batch) {
          const row = yield* driver.findRun(lease.namespace, lease.runId)
          if (row === null || row.seq !== base || row.fence !== lease.fence) return refusedAll(batch)
        }
        return yield* driver.commit(batch)
      }),
  })),
  mutant("a batch ends at its first refusal", "D5: a refused commit in a batch", (driver) => ({
    commit: (batch) =>
      Effect.gen(function* () {
        const results: Array<CommitResult> = []
        for (const [n, commit] of batch.entries()) {
          results.push(...(yield* driver.commit([commit])))
          if (results[n]?._tag === "Refused") return [...results, ...refusedAll(batch.slice(n + 1))]
        }
        return results
      }),
  })),
  mutant("results stand in another order than the batch", "D5: a refused commit in a batch", (driver) => ({
    commit: (batch) =>
      Effect.map(driver.commit(batch), (results) => [...results].sort((a, b) => (a._tag < b._tag ? -1 : 1))),
  })),
  mutant("a batch writes the first run's rows for all", "D5: a batch of five hundred", (driver) => ({
    commit: (batch) => driver.commit(batch.map((commit) => ({ ...commit, steps: batch[0]!.steps }))),
  })),
  mutant("an empty batch is an error", "D5: an empty batch", (driver) => ({
    commit: (batch) =>
      batch.length > 0
        ? driver.commit(batch)
        : Effect.fail(new StoreError({ reason: "Unknown", operation: "commit", problem: "syntax error" })),
  })),
  mutant(
    "a batch commits a hundred runs and claims to have committed all",
    "D5: a batch of five hundred",
    (driver) => ({
      commit: (batch) =>
        Effect.map(driver.commit(batch.slice(0, 100)), (results) =>
          batch.map((_, n): CommitResult => results[n] ?? { _tag: "Committed", at: 0, status: "running" }),
        ),
    }),
  ),
]

export const commitMutants: ReadonlyArray<Mutant> = [...creating, ...atomic, ...guards, ...batches]
