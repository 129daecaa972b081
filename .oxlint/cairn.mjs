/** Rules of this workspace that oxlint does not bring. */

/** An index says by name what it offers: `export *` publishes whatever the next commit adds. `export * as Name` does not. */
const noExportAll = {
  create: (context) => ({
    ExportAllDeclaration(node) {
      if (node.exported === null) context.report({ node, message: "Export by name, not `export *`." })
    },
  }),
}

// oxlint takes a plugin by its default export.
export default { meta: { name: "cairn" }, rules: { "no-export-all": noExportAll } }
