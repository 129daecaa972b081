/** A driver that keeps the paths of everything that it is given to commit, so that a case can ask for all of them. */
import type { CheckpointDriver } from "@cairn/core"

/** The same driver; the paths of each batch are added to `paths`, also of what is refused: it must not be found. */
export const notingPaths = (driver: CheckpointDriver, paths: Set<string>): CheckpointDriver => ({
  capabilities: driver.capabilities,
  now: driver.now,
  createRun: (run) => driver.createRun(run),
  findRun: (namespace, runId) => driver.findRun(namespace, runId),
  load: (namespace, runId) => driver.load(namespace, runId),
  loadOpen: (namespace, runId, asked) => driver.loadOpen(namespace, runId, asked),
  claim: (request) => driver.claim(request),
  commit: (batch) => {
    for (const { steps, effects, attempts } of batch) {
      for (const { path } of [...steps, ...effects, ...attempts]) paths.add(path)
    }
    return driver.commit(batch)
  },
  recordOutcome: (outcome) => driver.recordOutcome(outcome),
  findEffect: (key) => driver.findEffect(key),
  beat: (workerId, leaseMs) => driver.beat(workerId, leaseMs),
  releaseWorker: (workerId) => driver.releaseWorker(workerId),
  unpark: (namespace, runId) => driver.unpark(namespace, runId),
  ...(driver.onWakeUp === undefined ? {} : { onWakeUp: (listener: () => void) => driver.onWakeUp?.(listener) }),
})
