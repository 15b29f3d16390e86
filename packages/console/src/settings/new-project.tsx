/**
 * Makes another project on this server, and goes there.
 */
import type { Principal } from "@tropism/api/authorization"
import type { Project } from "@tropism/api/system-api"
import { useNavigate } from "@tanstack/react-router"
import { type ReactNode, useState } from "react"
import { Button } from "../parts/button.tsx"
import { FormDialog } from "../parts/form-dialog.tsx"
import { TextField } from "../parts/form-fields.tsx"
import { projectsQuery } from "../server/queries.ts"
import { useAct } from "../server/use-act.ts"
import { makeProject } from "./settings-acts.ts"

/** Whether somebody's credential reaches the server as a whole, and may change it. */
export const mayMakeProjects = ({ projectIds, role }: Principal): boolean =>
  projectIds === null && role === "admin"

export const NewProject = (): ReactNode => {
  const [isMaking, setIsMaking] = useState(false)
  return (
    <>
      <p className="text-sm">
        A project has its own graph, agents, members and limits, isolated from other projects.
      </p>
      <div>
        <Button onClick={() => setIsMaking(true)}>Create project …</Button>
      </div>
      {isMaking && <ProjectForm onClose={() => setIsMaking(false)} />}
    </>
  )
}

const ProjectForm = ({ onClose }: { readonly onClose: () => void }): ReactNode => {
  const [name, setName] = useState("")
  const navigate = useNavigate()
  const make = useAct({
    what: "Create project",
    act: makeProject,
    touches: [projectsQuery.queryKey],
    onDone: ({ id }: Project) => navigate({ to: "/", search: { project: id } })
  })
  return (
    <FormDialog
      title="Create project"
      verb="Create"
      isBusy={make.isBusy}
      error={make.error}
      pointers={["/name"]}
      onSubmit={() => make.run(name)}
      onClose={onClose}
    >
      <TextField
        label="Name"
        pointer="/name"
        error={make.error}
        value={name}
        onChange={setName}
        hasFirstFocus
      />
    </FormDialog>
  )
}
