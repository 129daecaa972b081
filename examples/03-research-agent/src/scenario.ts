/** One scenario: five workers die, the sixth one finishes. What happened is read from the servers' own logs. */
import { existsSync, mkdirSync, readFileSync } from "node:fs"
import { run, startService, type Ending, type Service } from "./processes.js"
import type { CmsEntry } from "./servers/cms.js"
import type { ModelCall } from "./servers/model.js"
import type { StorePlace } from "./store.js"
import { settingsVariable, type Moment, type WorkerEvent, type WorkerSettings } from "./workerProtocol.js"

export const deaths: ReadonlyArray<Moment> = [
  { call: "choose 1", when: "answered", inWords: "in turn 1: the model has answered, and nothing of it is stored" },
  {
    call: "read ducks",
    when: "asked",
    inWords: "in turn 2: the model's choice is stored, the tool is about to be called",
  },
  { call: "read inuksuit", when: "answered", inWords: "in turn 4: the tool has answered, and nothing of it is stored" },
  { call: "write", when: "answered", inWords: "after the loop: the article is written, and nothing of it is stored" },
  {
    call: "publish",
    when: "answered",
    inWords: "at the end: the page is published, and the worker could not record it",
  },
]

export interface Life {
  readonly death: Moment | null
  readonly exit: Ending
  /** What the worker found when it started. */
  readonly found: string | null
  /** What its life has cost: calls of the model. */
  readonly calls: ReadonlyArray<ModelCall>
}

export interface Facts {
  readonly lives: ReadonlyArray<Life>
  readonly calls: ReadonlyArray<ModelCall>
  readonly cms: ReadonlyArray<CmsEntry>
  readonly ended: Extract<WorkerEvent, { event: "ended" }> | null
}

const readLog = <Entry>(file: string): ReadonlyArray<Entry> =>
  existsSync(file)
    ? readFileSync(file, "utf8")
        .split("\n")
        .slice(0, -1)
        .map((line) => JSON.parse(line) as Entry)
    : []

/** Who watches a scenario while it goes on. `number` counts lives from 1. */
export interface Audience {
  readonly event: (event: WorkerEvent, number: number) => void
  readonly died: (life: Life) => void
}

/** `store`: null for the plain retry. */
export const play = async (store: StorePlace | null, folder: string, audience?: Audience): Promise<Facts> => {
  mkdirSync(folder, { recursive: true })
  const logOf = (name: string): string => `${folder}/${name}.log.jsonl`
  const started: Array<Service<{ readonly url: string }>> = []
  const serve = async (name: string): Promise<string> => {
    const server = await startService<{ readonly url: string }>(`The ${name}`, "servers/serve.ts", {
      args: [name, logOf(name)],
    })
    started.push(server)
    return server.announced.url
  }
  try {
    const [model, library, cms] = await Promise.all([serve("model"), serve("library"), serve("cms")])
    const lives: Array<Life> = []
    let ended: Facts["ended"] = null
    for (const death of [...deaths, null]) {
      const before = readLog<ModelCall>(logOf("model")).length
      let found: string | null = null
      const settings: WorkerSettings = { addresses: { model, library, cms }, store, death }
      const script = store === null ? "plainRetry.ts" : "worker.ts"
      const worker = run(script, { environment: { [settingsVariable]: JSON.stringify(settings) } }, (line) => {
        const event = JSON.parse(line) as WorkerEvent
        if (event.event === "found") found = event.at
        if (event.event === "ended") ended = event
        audience?.event(event, lives.length + 1)
      })
      const exit = await worker.exit
      const life: Life = { death, exit, found, calls: readLog<ModelCall>(logOf("model")).slice(before) }
      lives.push(life)
      audience?.died(life)
    }
    return { lives, calls: readLog(logOf("model")), cms: readLog(logOf("cms")), ended }
  } finally {
    await Promise.all(started.map((server) => server.stop()))
  }
}
