export type { PostgresStoreOptions } from "./internal/connectionOptions.js"
export { PostgresDriver } from "./PostgresDriver.js"
export { PostgresMigrations, type PostgresMigrationsOptions } from "./PostgresMigrations.js"
export { PostgresStore } from "./PostgresStore.js"
