export type { SqliteStoreOptions } from "./internal/openDatabase.js"
export { SqliteDriver } from "./SqliteDriver.js"
export { SqliteStore } from "./SqliteStore.js"
