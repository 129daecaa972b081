export { startPostgres, type PostgresServer } from "./startPostgres.js"
export { makeTestDatabase, testServerUrl, type TestDatabase } from "./testDatabase.js"
