/**
 * One object: its properties, where they come from, and its versions.
 */
import type { ReactNode } from "react"
import { EmptyState } from "../parts/empty-state.tsx"
import { PageHeader } from "../parts/page-header.tsx"

export const ObjectPage = (): ReactNode => (
  <>
    <PageHeader title="Object" />
    <EmptyState
      title="Not in the browser yet"
      command="npx tropism why OBJECT"
      does="tells who set each property, and why"
    >
      This object will be shown here with its history. The command line tells where its properties come from
      already.
    </EmptyState>
  </>
)
