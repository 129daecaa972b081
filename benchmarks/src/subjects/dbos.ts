import { DBOS } from "@dbos-inc/dbos-sdk"
import { poolSize, type Opened, type Place, type Shape, type Subject } from "../Subject.js"

const open = async ({ url }: Place, shapes: ReadonlyArray<Shape>): Promise<Opened> => {
  DBOS.setConfig({
    name: "bench",
    systemDatabaseUrl: url,
    systemDatabasePoolSize: poolSize,
    // The same in every process of a measurement, so that a restarted one recovers what the killed one left.
    applicationVersion: "1",
    executorID: "bench",
    logLevel: "error",
  })
  const workflows = new Map(
    shapes.map(({ body, name, steps }) => [
      name,
      DBOS.registerWorkflow(
        async () => {
          for (let index = 0; index < steps; index++) {
            await DBOS.runStep(async () => body(index), { name: `s${index}` })
          }
        },
        { name },
      ),
    ]),
  )
  await DBOS.launch()
  return {
    run: async (workflow, workflowID) => {
      const handle = await DBOS.startWorkflow(workflows.get(workflow)!, { workflowID })()
      await handle.getResult()
    },
    // Launching has started it again.
    goOn: async (_, workflowID) => void (await DBOS.retrieveWorkflow(workflowID).getResult()),
    settings: async () => ({ pool: String(poolSize), concurrency: "unbounded (no queue)" }),
    close: () => DBOS.shutdown(),
  }
}

export const subjects: ReadonlyArray<Subject> = [
  {
    name: "DBOS, postgres",
    engine: "dbos",
    class: "postgres",
    mode: "step",
    packages: ["@dbos-inc/dbos-sdk"],
    note: "Runs are started in the process itself, without a queue, as its quickstart does: there is no lease and no claim.",
    leaseMs: 0,
    open,
  },
]
