/**
 * Makes an object by hand.
 */
import type { GraphObject } from "@tropism/domain/graph"
import { useNavigate } from "@tanstack/react-router"
import { Option, Result } from "effect"
import { type ReactNode, useState } from "react"
import { FormDialog } from "../parts/form-dialog.tsx"
import { TextField } from "../parts/form-fields.tsx"
import { useWrite } from "../server/use-write.ts"
import { writtenProperties } from "./object-words.ts"

export const NewObject = ({ onClose }: { readonly onClose: () => void }): ReactNode => {
  const navigate = useNavigate()
  const [type, setType] = useState("")
  const [key, setKey] = useState("")
  const [text, setText] = useState("{}")
  const [fault, setFault] = useState<string>()
  const { run, isBusy, error, forget } = useWrite<GraphObject>("Create object", ({ id }) =>
    navigate({ to: "/objects/$objectId", params: { objectId: id } })
  )
  const make = () => {
    forget()
    const written = writtenProperties(text)
    setFault(Option.getOrUndefined(Result.getFailure(written)))
    if (Result.isFailure(written)) return
    run({
      path: "objects",
      method: "POST",
      body: { type, ...(key !== "" && { key }), properties: written.success }
    })
  }
  return (
    <FormDialog
      title="New object"
      verb="Create"
      isBusy={isBusy}
      isReady={type !== ""}
      error={error}
      pointers={["/type", "/key", "/properties"]}
      onSubmit={make}
      onClose={onClose}
    >
      <TextField
        label="Type"
        hint="e.g. Person"
        pointer="/type"
        error={error}
        value={type}
        onChange={setType}
        isRequired
        hasFirstFocus
      />
      <TextField
        label="Key"
        hint="Unique key (optional)"
        pointer="/key"
        error={error}
        value={key}
        onChange={setKey}
      />
      <TextField
        label="Properties"
        hint="JSON object"
        pointer="/properties"
        error={error}
        fault={fault}
        value={text}
        onChange={setText}
        lines={6}
        isMono
      />
    </FormDialog>
  )
}
