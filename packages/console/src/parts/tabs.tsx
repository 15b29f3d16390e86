/**
 * Tabs whose choice is kept in the address, so that a link opens the same one.
 */
import { Tabs as RadixTabs } from "radix-ui"
import { type ReactNode, useLayoutEffect, useRef } from "react"
import { useAddress } from "./use-address.ts"

export interface Tab {
  /** What stands in the address. */
  readonly id: string
  readonly title: string
  readonly count?: number | undefined
  /** Drawn when the tab is open. */
  readonly content: () => ReactNode
}

interface TabsProps {
  /** What the tabs are of. */
  readonly label: string
  /** The first is open when the address names none. */
  readonly tabs: ReadonlyArray<Tab>
  /** The parameter of the address. */
  readonly parameter?: string
}

export const Tabs = ({ label, tabs, parameter = "tab" }: TabsProps): ReactNode => {
  const [address, change] = useAddress()
  const [first] = tabs
  const open = tabs.find(({ id }) => id === address[parameter]) ?? first
  const list = useRef<HTMLDivElement>(null)
  const openId = open?.id
  useLayoutEffect(() => {
    if (openId !== undefined) showChosen(list.current)
  }, [openId])
  if (open === undefined) return null
  const choose = (id: string) => change({ [parameter]: id === first?.id ? undefined : id })
  return (
    <RadixTabs.Root
      // A tab that only has the focus does not lead away from what is being written.
      activationMode="manual"
      value={open.id}
      onValueChange={choose}
    >
      <RadixTabs.List
        ref={list}
        aria-label={label}
        className="mb-5 flex gap-1 overflow-x-auto border-b border-line [scrollbar-width:none]"
      >
        {tabs.map(({ id, title, count }) => (
          <RadixTabs.Trigger
            key={id}
            value={id}
            data-tab={id}
            onKeyDown={(event) => {
              if (event.key !== "Enter" && event.key !== " ") return
              // Else the same press would answer the question whether to leave what is being written.
              event.preventDefault()
              choose(id)
            }}
            className="-mb-px flex h-9 shrink-0 items-center gap-2 border-b-2 border-transparent px-3 text-sm text-ink-soft hover:text-ink focus-visible:outline-offset-[-2px] data-[state=active]:border-leaf data-[state=active]:font-semibold data-[state=active]:text-ink"
          >
            {title}
            {count !== undefined && <span className="text-2xs text-ink-faint">{count.toLocaleString()}</span>}
          </RadixTabs.Trigger>
        ))}
      </RadixTabs.List>
      <RadixTabs.Content value={open.id} className="outline-none">
        {open.content()}
      </RadixTabs.Content>
    </RadixTabs.Root>
  )
}

/** On a narrow screen the chosen tab may lie beside what is seen; only the row of tabs is moved. */
const showChosen = (list: HTMLElement | null): void => {
  const chosen = list?.querySelector("[role=tab][aria-selected=true]")?.getBoundingClientRect()
  if (list === null || chosen === undefined) return
  const { left, right } = list.getBoundingClientRect()
  if (chosen.right > right) list.scrollLeft += chosen.right - right
  else if (chosen.left < left) list.scrollLeft -= left - chosen.left
}
