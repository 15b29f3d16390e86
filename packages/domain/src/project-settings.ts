/**
 * What a project decides for everything in it.
 *
 * Kept is only what somebody set, so a default that changes later changes for
 * every project that said nothing; answered is the whole, every default said.
 */
import { Schema } from "effect"
import { ChainLimits, ChainLimitsPatch, defineChainLimits } from "./chain.ts"

export const ProjectSettings = Schema.Struct({ chainLimits: ChainLimits }).annotate({
  identifier: "ProjectSettings"
})
export type ProjectSettings = typeof ProjectSettings.Type

/** The settings that change: absent fields stay, null goes back to the default. */
export const ProjectSettingsPatch = Schema.Struct({
  chainLimits: Schema.optional(Schema.NullOr(ChainLimitsPatch))
}).annotate({ identifier: "ProjectSettingsPatch" })
export type ProjectSettingsPatch = typeof ProjectSettingsPatch.Type

/** Fills in every default. */
export const defineSettings = (kept: ProjectSettingsPatch): ProjectSettings => ({
  chainLimits: defineChainLimits(kept.chainLimits ?? {})
})

/** What is kept after a patch. */
export const patchSettings = (
  kept: ProjectSettingsPatch,
  patch: ProjectSettingsPatch
): ProjectSettingsPatch => ({
  ...kept,
  ...(patch.chainLimits === undefined
    ? {}
    : { chainLimits: patch.chainLimits === null ? null : { ...kept.chainLimits, ...patch.chainLimits } })
})
