/**
 * A mailbox on disk, in the manner of a maildir: a file a message, written below `tmp`, moved to `new` when it is whole.
 *
 * - **M1** A message that was stored is on disk, with its name: the file is synced before it is moved, the folder after.
 * - **M2** A message is seen as a whole or not at all: what is not yet in `new` does not exist.
 * - **M3** It is seen from the moment on at which it is stored: a look reads the folder, not a memory of it.
 * - **M4** A message that could not be stored is not there: whoever was told so will bring it again as another one.
 */
import { randomUUID } from "node:crypto"
import { mkdirSync } from "node:fs"
import { open, readdir, readFile, rename, rm } from "node:fs/promises"

export interface StoredMessage {
  /** Its file. */
  readonly name: string
  readonly messageId: string | null
  readonly to: string | null
}

const writeSynced = async (file: string, content: Buffer): Promise<void> => {
  const handle = await open(file, "wx")
  try {
    await handle.writeFile(content)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

const syncFolder = async (folder: string): Promise<void> => {
  const handle = await open(folder, "r")
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** A header's value; a long header may stand on several lines. */
const headerOf = (message: string, name: string): string | null => {
  const [head = ""] = message.split("\r\n\r\n", 1)
  const unfolded = head.replace(/\r\n(?=[ \t])/g, "")
  return new RegExp(`^${name}:[ \\t]*(.*)$`, "im").exec(unfolded)?.[1]?.trim() ?? null
}

export interface Maildir {
  /** Resolves with the message's name once it is on disk; rejects if it is not kept (M4). */
  readonly store: (message: Buffer) => Promise<string>
  readonly messages: () => Promise<ReadonlyArray<StoredMessage>>
}

/** Opens a mailbox, and makes it if it is not there. */
export const openMaildir = (folder: string): Maildir => {
  for (const part of ["tmp", "new"]) mkdirSync(`${folder}/${part}`, { recursive: true })
  return {
    store: async (message) => {
      const name = `${Date.now()}.${randomUUID()}`
      const [whole, seen] = [`${folder}/tmp/${name}`, `${folder}/new/${name}`]
      try {
        await writeSynced(whole, message) // M1
        await rename(whole, seen) // M2
        await syncFolder(`${folder}/new`) // M1
      } catch (error) {
        await Promise.all([whole, seen].map((file) => rm(file, { force: true }))) // M4
        throw error
      }
      return name
    },
    messages: async () => {
      const names = (await readdir(`${folder}/new`)).sort() // M3
      return Promise.all(
        names.map(async (name) => {
          const message = await readFile(`${folder}/new/${name}`, "utf8")
          return { name, messageId: headerOf(message, "message-id"), to: headerOf(message, "to") }
        }),
      )
    },
  }
}
