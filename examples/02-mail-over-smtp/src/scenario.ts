/**
 * One scenario: a worker is started and dies just before it sends, the next one dies when the server has accepted the
 * mails, the third one finishes. What happened is read from the server's disk.
 */
import { mkdirSync } from "node:fs"
import type { MailServerAddress } from "./mailer.js"
import { readJournal } from "./mailServer/journal.js"
import { openMaildir, type StoredMessage } from "./mailServer/maildir.js"
import type { Question } from "./mailServer/mailServer.js"
import { runWorker, startMailServerProcess, type Service } from "./processes.js"
import type { StorePlace } from "./store.js"
import { filesIn, type Moment, type WorkerEvent } from "./workerProtocol.js"

/** How one worker process ended: its exit code, or the signal that ended it. */
export interface Life {
  readonly dieAt: Moment | null
  readonly exit: number | NodeJS.Signals
}

/** What is known afterwards; all but `lives` and `problems` from the mail server's disk. */
export interface Facts {
  readonly lives: ReadonlyArray<Life>
  readonly messages: ReadonlyArray<StoredMessage>
  readonly questions: ReadonlyArray<Question>
  /** By order: null where it finished well. */
  readonly problems: ReadonlyMap<string, string | null>
}

/** Who watches a scenario while it goes on. */
export interface Audience {
  readonly server?: (server: Service<MailServerAddress>) => void
  /** `life` counts from 1. */
  readonly born?: (pid: number, life: number) => void
  readonly event?: (event: WorkerEvent) => void
  /** With how many mails the server has accepted by then. */
  readonly died?: (life: Life, accepted: number) => void
}

const deaths = ["beforeSend", "afterAccept", null] as const

/** `store`: null for the plain retry. */
export const play = async (store: StorePlace | null, folder: string, audience: Audience = {}): Promise<Facts> => {
  mkdirSync(folder, { recursive: true })
  const files = filesIn(folder)
  const server = await startMailServerProcess({ mailFolder: files.mail, questionFile: files.questions })
  const maildir = openMaildir(files.mail)
  try {
    audience.server?.(server)
    const lives: Array<Life> = []
    const problems = new Map<string, string | null>()
    for (const dieAt of deaths) {
      const worker = runWorker({ server: server.announced, store, jobFile: files.jobs, dieAt }, (event) => {
        if (event.event === "finished") problems.set(event.order, event.problem)
        audience.event?.(event)
      })
      audience.born?.(worker.pid, lives.length + 1)
      const life: Life = { dieAt, exit: await worker.exit }
      lives.push(life)
      audience.died?.(life, (await maildir.messages()).length)
    }
    return {
      lives,
      messages: await maildir.messages(),
      questions: readJournal<Question>(files.questions),
      problems,
    }
  } finally {
    await server.stop()
  }
}
