/**
 * The graph module: its writer, reads, imports and exports. It requires Authorities.
 */
import { Layer } from "effect"
import { Exporter } from "./exporter.ts"
import { Gateway } from "./gateway.ts"
import { ImportBatch, ImportLookup } from "./import/import-batch.ts"
import { ImportTurns, Imports } from "./import/imports.ts"
import { LineImporter } from "./import/line-importer.ts"
import { Importer } from "./import/package-importer.ts"
import { Inspector } from "./inspector.ts"
import { Moments } from "./moments.ts"
import { Objects } from "./objects.ts"
import { Provenances, Purges } from "./provenance.ts"
import { Neighborhoods, Relationships } from "./relationships.ts"
const reads = Layer.mergeAll(Objects.layer, Relationships.layer, Moments.layer)
const graph = Layer.provideMerge(
  Layer.mergeAll(Gateway.layer, Inspector.layer, Neighborhoods.layer, Provenances.layer, Purges.layer),
  reads
)
const imports = Layer.mergeAll(ImportBatch.layer, Imports.layer, ImportTurns.layer).pipe(
  Layer.provideMerge(Layer.provideMerge(ImportLookup.layer, graph))
)

export const graphLayer = Layer.provideMerge(
  Layer.mergeAll(Importer.layer, LineImporter.layer, Exporter.layer),
  imports
)
