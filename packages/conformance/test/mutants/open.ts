/** One fault each in what is read of the paths that are asked for (D11), and in what is settled (D17). */
import type { AttemptRow, CheckpointDriver, CommitRows, EffectRecord, EffectWrite, OpenRows } from "@cairn/core"
import { Clock, Effect } from "effect"
import { editCommit, keyOf, mutant, viewOpen, type Mutant } from "./wrap.js"

/** Asks for other paths than it was asked for, knowing which were ever written. */
const askOther = (
  driver: CheckpointDriver,
  choose: (asked: ReadonlyArray<string>, written: ReadonlyArray<string>) => ReadonlyArray<string>,
): Partial<CheckpointDriver> => {
  const written = new Set<string>()
  return {
    ...editCommit(driver, (commit) => {
      for (const { path } of [...commit.effects, ...commit.attempts]) written.add(path)
      return commit
    }),
    loadOpen: (namespace, runId, paths) => driver.loadOpen(namespace, runId, choose(paths, [...written])),
  }
}

/** Gives each path's rows in another order. */
const reorder = (
  driver: CheckpointDriver,
  order: { readonly effects?: (a: EffectRecord, b: EffectRecord) => number; readonly attempts?: typeof byNewest },
): Partial<CheckpointDriver> =>
  viewOpen(driver, ({ effects, attempts }) => ({
    effects: [...effects].sort(order.effects ?? (() => 0)),
    attempts: [...attempts].sort(order.attempts ?? (() => 0)),
  }))

const byNewest = (a: AttemptRow, b: AttemptRow): number => b.attempt - a.attempt

const byText = (a: number, b: number): number => (String(a) < String(b) ? -1 : 1)

const like = (pattern: string, text: string): boolean =>
  pattern.endsWith("%")
    ? text.startsWith(pattern.slice(0, -1))
    : pattern.length === text.length && [...pattern].every((unit, n) => unit === "_" || unit === [...text][n])

const exactly = "D11: loadOpen gives the effects"
const ordered = "D11: within a path"

const asked: ReadonlyArray<Mutant> = [
  mutant("loadOpen gives all paths of the run", exactly, (driver) => askOther(driver, (_, written) => written)),
  mutant("loadOpen takes no paths for all", exactly, (driver) =>
    askOther(driver, (paths, written) => (paths.length === 0 ? written : paths)),
  ),
  mutant("loadOpen gives one path of those asked for", exactly, (driver) =>
    askOther(driver, (paths) => paths.slice(0, 1)),
  ),
  mutant("loadOpen gives paths that begin like one asked for", exactly, (driver) =>
    askOther(driver, (paths, written) => written.filter((one) => paths.some((path) => one.startsWith(path)))),
  ),
  mutant("loadOpen takes paths for patterns", exactly, (driver) =>
    askOther(driver, (paths, written) => written.filter((one) => paths.some((path) => like(path, one)))),
  ),
  mutant("loadOpen gives a path as often as it was asked for", exactly, (driver) => ({
    loadOpen: (namespace, runId, paths) =>
      Effect.map(
        Effect.forEach(paths, (path) => driver.loadOpen(namespace, runId, [path])),
        (all): OpenRows => ({
          effects: all.flatMap(({ effects }) => effects),
          attempts: all.flatMap(({ attempts }) => attempts),
        }),
      ),
  })),
  mutant("loadOpen leaves out what is committed", exactly, (driver) => ({
    loadOpen: (namespace, runId, paths) =>
      Effect.flatMap(driver.load(namespace, runId), (rows) =>
        driver.loadOpen(
          namespace,
          runId,
          paths.filter((one) => rows?.steps.some(({ path }) => path === one) !== true),
        ),
      ),
  })),
  mutant("loadOpen gives the last generation only", exactly, (driver) =>
    viewOpen(driver, (rows) => ({ ...rows, effects: rows.effects.filter(({ generation }) => generation === 1) })),
  ),
  mutant("loadOpen gives the last attempt only", exactly, (driver) =>
    viewOpen(driver, (rows) => ({ ...rows, attempts: rows.attempts.filter(({ attempt }) => attempt === 2) })),
  ),
  mutant("findEffect gives open intents only", exactly, (driver) => ({
    findEffect: (key) =>
      Effect.flatMap(driver.load(key.namespace, key.runId), (rows) =>
        rows?.steps.some(({ path }) => path === key.path) === true ? Effect.succeed(null) : driver.findEffect(key),
      ),
  })),
  mutant("loadOpen gives generations newest first", ordered, (driver) =>
    reorder(driver, { effects: (a, b) => b.generation - a.generation }),
  ),
  mutant("loadOpen gives generations in order of their text", ordered, (driver) =>
    reorder(driver, { effects: (a, b) => byText(a.generation, b.generation) }),
  ),
  mutant("loadOpen gives attempts newest first", ordered, (driver) => reorder(driver, { attempts: byNewest })),
  mutant("loadOpen gives attempts in order of their text", ordered, (driver) =>
    reorder(driver, { attempts: (a, b) => byText(a.attempt, b.attempt) }),
  ),
  mutant("loadOpen gives what was written in its order", ordered, (driver) => {
    const written: Array<string> = []
    const place = (path: string, n: number): number => written.indexOf(`${n} ${path}`)
    return {
      ...editCommit(driver, (commit) => {
        for (const { generation, path } of commit.effects) written.push(`${generation} ${path}`)
        return commit
      }),
      ...reorder(driver, { effects: (a, b) => place(a.path, a.generation) - place(b.path, b.generation) }),
    }
  }),
  mutant("loadOpen gives no more than a hundred paths", "D11: hundreds of paths", (driver) =>
    askOther(driver, (paths) => paths.slice(0, 100)),
  ),
  mutant("loadOpen ignores the namespace", "D11: a load gives the rows of its own run", (driver) => {
    const homes = new Map<string, string>()
    return {
      createRun: (run) => {
        if (!homes.has(run.runId)) homes.set(run.runId, run.namespace)
        return driver.createRun(run)
      },
      loadOpen: (namespace, runId, paths) => driver.loadOpen(homes.get(runId) ?? namespace, runId, paths),
    }
  }),
  mutant("loadOpen gives a neighbour's rows as well", "D11: a load gives the rows of its own run", (driver) => {
    const runIds = new Set<string>()
    return {
      createRun: (run) => {
        runIds.add(run.runId)
        return driver.createRun(run)
      },
      loadOpen: (namespace, _, paths) =>
        Effect.map(
          Effect.forEach(runIds, (runId) => driver.loadOpen(namespace, runId, paths)),
          (all): OpenRows => ({
            effects: all.flatMap(({ effects }) => effects),
            attempts: all.flatMap(({ attempts }) => attempts),
          }),
        ),
    }
  }),
  mutant("loadOpen gives the stored rows themselves", "D11: nobody changes what is stored", (driver) => {
    const kept = new Map<string, EffectRecord>()
    const stored = (row: EffectRecord): EffectRecord => {
      const key = JSON.stringify(row)
      if (!kept.has(key)) kept.set(key, row)
      return kept.get(key)!
    }
    return viewOpen(driver, (rows) => ({ ...rows, effects: rows.effects.map(stored) }))
  }),
]

type Key = Parameters<CheckpointDriver["findEffect"]>[0]

const placeOf = ({ generation, namespace, path, runId }: Key): string =>
  JSON.stringify([namespace, runId, path, generation])

/** Writes over effects that are settled, as far as `change` says; null leaves one as it is. */
const overSettled = (
  driver: CheckpointDriver,
  change: (known: EffectRecord, write: EffectWrite, now: number) => EffectRecord | null,
): Partial<CheckpointDriver> => {
  const changed = new Map<string, EffectRecord>()
  const seen = (key: Key, row: EffectRecord): EffectRecord => changed.get(placeOf(key)) ?? row
  const findEffect: CheckpointDriver["findEffect"] = (key) =>
    Effect.map(driver.findEffect(key), (row) => (row === null ? null : seen(key, row)))
  const overwrite = ({ effects, lease }: CommitRows) =>
    Effect.gen(function* () {
      const now = yield* Clock.currentTimeMillis
      for (const write of effects) {
        const key = { ...lease, path: write.path, generation: write.generation }
        const known = yield* findEffect(key)
        const next = known === null || known.state === "intended" ? null : change(known, write, now)
        if (next !== null) changed.set(placeOf(key), next)
      }
    })
  return {
    findEffect,
    commit: (batch) => Effect.zipRight(Effect.forEach(batch, overwrite, { discard: true }), driver.commit(batch)),
    ...viewOpen(driver, (rows, run) => ({
      ...rows,
      effects: rows.effects.map((row) => seen({ ...run, path: row.path, generation: row.generation }, row)),
    })),
  }
}

const replaced = (known: EffectRecord, write: EffectWrite, now: number): EffectRecord => ({
  ...write,
  intentAt: known.intentAt,
  settledAt: write.state === "intended" ? null : now,
})

/** Changes a batch, knowing which of its effects are settled already. */
const meetingSettled = (
  driver: CheckpointDriver,
  edit: (batch: ReadonlyArray<CommitRows>, settled: ReadonlySet<EffectWrite>) => ReadonlyArray<CommitRows>,
): Partial<CheckpointDriver> => ({
  commit: (batch) =>
    Effect.gen(function* () {
      const settled = new Set<EffectWrite>()
      for (const { effects, lease } of batch) {
        for (const write of effects) {
          const known = yield* driver.findEffect({ ...lease, path: write.path, generation: write.generation })
          if (known !== null && known.state !== "intended") settled.add(write)
        }
      }
      return yield* driver.commit(edit(batch, settled))
    }),
})

const stays = "D17: an effect that is settled"

const settled: ReadonlyArray<Mutant> = [
  mutant("a commit replaces settled effects", stays, (driver) => overSettled(driver, replaced)),
  mutant("a commit that settles replaces settled effects", stays, (driver) =>
    overSettled(driver, (known, write, now) => (write.state === "intended" ? null : replaced(known, write, now))),
  ),
  mutant("a commit replaces what failed", stays, (driver) =>
    overSettled(driver, (known, write, now) => (known.state === "failed" ? replaced(known, write, now) : null)),
  ),
  mutant("a commit replaces what was not performed", stays, (driver) =>
    overSettled(driver, (known, write, now) => (known.state === "notPerformed" ? replaced(known, write, now) : null)),
  ),
  mutant("a commit stamps settled effects anew", stays, (driver) =>
    overSettled(driver, (known, _, now) => ({ ...known, settledAt: now })),
  ),
  mutant("a commit counts sendings of settled effects", stays, (driver) =>
    overSettled(driver, (known, { sends }) => ({ ...known, sends })),
  ),
  mutant("a commit gives settled effects another claim token", stays, (driver) =>
    overSettled(driver, (known, { claimToken }) => ({ ...known, claimToken })),
  ),
  mutant("a commit is refused when it meets a settled effect", stays, (driver) =>
    meetingSettled(driver, (batch, already) =>
      batch.map((commit) => (commit.effects.some((one) => already.has(one)) ? { ...commit, base: -1 } : commit)),
    ),
  ),
  mutant("a commit drops its effects when it meets a settled one", stays, (driver) =>
    meetingSettled(driver, (batch, already) =>
      batch.map((commit) => (commit.effects.some((one) => already.has(one)) ? { ...commit, effects: [] } : commit)),
    ),
  ),
  mutant("a commit drops its attempts when it meets a settled effect", stays, (driver) =>
    meetingSettled(driver, (batch, already) =>
      batch.map((commit) => (commit.effects.some((one) => already.has(one)) ? { ...commit, attempts: [] } : commit)),
    ),
  ),
  mutant("an effect that is settled in one run stays in all", "D17: in a batch", (driver) =>
    meetingSettled(driver, (batch, already) => {
      const places = new Set([...already].map(({ generation, path }) => `${generation} ${path}`))
      return batch.map((commit) => ({
        ...commit,
        effects: commit.effects.filter(({ generation, path }) => !places.has(`${generation} ${path}`)),
      }))
    }),
  ),
  mutant("a recorded outcome is lost to the next owner's intent", "D17: an outcome that", (driver) => {
    const recorded = new Set<string>()
    return {
      ...overSettled(driver, (known, write, now) =>
        recorded.has(known.claimToken) && write.claimToken !== known.claimToken ? replaced(known, write, now) : null,
      ),
      recordOutcome: (outcome) => {
        recorded.add(outcome.claimToken)
        return driver.recordOutcome(outcome)
      },
    }
  }),
  mutant("a refused commit still writes its intents", "D3: a commit with another fence", (driver) => {
    const leaked = new Map<string, CommitRows>()
    return {
      commit: (batch) =>
        Effect.map(driver.commit(batch), (results) => {
          for (const [n, result] of results.entries()) {
            if (result._tag === "Refused") leaked.set(keyOf(batch[n]!.lease), batch[n]!)
          }
          return results
        }),
      ...viewOpen(driver, (rows, run) => ({
        ...rows,
        effects: [
          ...rows.effects,
          ...(leaked.get(keyOf(run))?.effects ?? []).map((one) => ({ ...one, intentAt: 0, settledAt: null })),
        ],
      })),
    }
  }),
]

export const openMutants: ReadonlyArray<Mutant> = [...asked, ...settled]
