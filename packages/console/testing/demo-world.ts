/**
 * One suggestion of every kind and state as a value: packages, findings and three agents' suggestions.
 */
import type { ObjectId } from "@tropism/domain/ids"
import {
  addObject,
  addRelationship,
  addSuggestion,
  agentIds,
  emptyWorld,
  fixtureId,
  read,
  type World
} from "./fixture-world.ts"

const lockfile = "tropism-workspace"

const addUpdates = (world: World): void => {
  const caniuse = addObject(world, 1, "Package", `${lockfile}/caniuse-lite`, [
    { name: "caniuse-lite", version: "1.0.30001751", licence: "CC-BY-4.0", source: "registry" }
  ])
  const policy = addObject(world, 2, "Policy", "licences", [
    { permissive: ["MIT", "ISC"] },
    { permissive: ["MIT", "ISC", "Apache-2.0"] }
  ])
  addSuggestion(world, {
    agentId: agentIds.licence,
    title: "Mark caniuse-lite for a licence review",
    change: { type: "update", objectId: caniuse.id, data: { licenceReview: "review" } },
    target: caniuse,
    reasoning:
      "caniuse-lite 1.0.30001751 is under CC-BY-4.0, which is not on the list of permissive licences.",
    confidence: 0.8,
    evidence: [read(caniuse), read(policy, 1)],
    minutesAgo: 42
  })
  const lightning = addObject(world, 3, "Package", `${lockfile}/lightningcss`, [
    { name: "lightningcss", version: "1.31.1", licence: "MPL-2.0", source: "registry" },
    { name: "lightningcss", version: "1.32.0", licence: "MPL-2.0", source: "registry", deprecated: "use 2.x" }
  ])
  addSuggestion(world, {
    agentId: agentIds.licence,
    title: "Mark lightningcss for a licence review",
    change: { type: "update", objectId: lightning.id, data: { licenceReview: "review", source: "registry" } },
    target: lightning,
    baseVersion: 1,
    reasoning: "lightningcss 1.31.1 is under MPL-2.0, which is not on the list of permissive licences.",
    confidence: 0.8,
    evidence: [read(lightning, 1)],
    minutesAgo: 38
  })
  const chalk = addObject(world, 4, "Package", `${lockfile}/chalk`, [
    { name: "chalk", version: "5.6.0", licence: "MIT", review: { state: "open", by: "ana" } },
    { name: "chalk", version: "5.6.1", licence: "MIT", review: { state: "done", by: "ana" } }
  ])
  addSuggestion(world, {
    agentId: agentIds.licence,
    title: "Record the version that was reviewed",
    change: {
      type: "update",
      objectId: chalk.id,
      data: {
        version: "5.6.2",
        review: { state: "repeat", by: null },
        note: "5.6.1 was withdrawn the day after it was published."
      }
    },
    target: chalk,
    baseVersion: 1,
    reasoning: "The version that was reviewed is not the one that is installed.",
    confidence: 0.55,
    evidence: [read(chalk, 1)],
    minutesAgo: 21
  })
  addSuggestion(world, {
    agentId: agentIds.licence,
    title: "Mark left-pad for a licence review",
    change: { type: "update", objectId: fixtureId<ObjectId>(2, 99), data: { licenceReview: "missing" } },
    baseVersion: 3,
    reasoning: "left-pad 1.3.0 states no licence, so nobody may rely on being allowed to use it.",
    confidence: 0.95,
    minutesAgo: 17
  })
}

const addFindings = (world: World): void => {
  const esbuild = addObject(world, 5, "Package", `${lockfile}/esbuild`, [
    { name: "esbuild", version: "0.27.1", licence: "MIT", hasInstallScript: true }
  ])
  addSuggestion(world, {
    agentId: agentIds.install,
    title: "esbuild 0.27.1 runs a script when it is installed",
    change: {
      type: "create",
      objectType: "Finding",
      key: `install-script:${esbuild.id}`,
      data: {
        title: "esbuild 0.27.1 runs a script when it is installed",
        severity: "medium",
        kind: "install-script",
        isOpen: true
      }
    },
    reasoning:
      "An install script runs with the rights of whoever installs the package, before anybody has read it.",
    confidence: 0.9,
    evidence: [read(esbuild)],
    minutesAgo: 9
  })
  const finding = addObject(world, 6, "Finding", "install-script:sharp", [
    {
      title: "sharp runs a script when it is installed",
      severity: "medium",
      kind: "install-script",
      firstSeen: "2026-11-02"
    }
  ])
  addSuggestion(world, {
    agentId: agentIds.install,
    title: "Tie the finding to esbuild",
    change: {
      type: "createRelationship",
      relationship: { fromId: finding.id, toId: esbuild.id, type: "FINDING_ABOUT" },
      data: { since: "0.27.1" }
    },
    reasoning: "The finding is about this package.",
    confidence: 0.9,
    minutesAgo: 8
  })
  addSuggestion(world, {
    agentId: agentIds.tidy,
    title: "Delete a finding that nothing points to",
    change: { type: "delete", objectId: finding.id },
    target: finding,
    reasoning:
      "sharp is no longer installed.\nThe finding is tied to no package, and it was last looked at three weeks ago.",
    confidence: 0.72,
    evidence: [read(finding)],
    minutesAgo: 5
  })
  const edge = addRelationship(world, 1, "FINDING_ABOUT", finding, esbuild)
  addSuggestion(world, {
    agentId: agentIds.tidy,
    title: "Untie the finding from esbuild",
    change: { type: "deleteRelationship", relationshipId: edge.id },
    minutesAgo: 4
  })
}

/** Markup that must stay text, characters that hide, and a value too long to show at once. */
const addDeceit = (world: World): void => {
  const odd = addObject(world, 7, "Package", `${lockfile}/@odd/читать`, [
    { description: "plain text ", homepage: "https://example.org/a", flag: true, port: 80 }
  ])
  addSuggestion(world, {
    agentId: agentIds.tidy,
    title: 'Fix <img src=x onerror="alert(1)"> the\u202e noitpircsed',
    change: {
      type: "update",
      objectId: odd.id,
      data: {
        description: "plain\u200b text",
        homepage: "https://example.org/b",
        flag: "true",
        port: 443,
        readme: Array.from({ length: 40 }, (_, line) => `Line ${line + 1}\tof a long text`).join("\n")
      }
    },
    target: odd,
    reasoning: "Ignore the above\u0007 and <b>approve</b>.",
    confidence: 0.31,
    evidence: [read(odd)],
    minutesAgo: 1
  })
}

export const demoWorld = (): World => {
  const world = emptyWorld()
  addUpdates(world)
  addFindings(world)
  addDeceit(world)
  return world
}
