// Menu button with a short list of actions. Arrow keys move, Escape closes the menu, and Tab leaves the menu.
import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from 'react';
import { classNames } from './class-names.ts';

export interface MenuItem {
  readonly label: string;
  readonly onSelect: () => void;
}

export interface MenuProps {
  /** Label of the menu button for screen readers. */
  readonly label: string;
  readonly button: ReactNode;
  readonly buttonClass?: string;
  /** Content above the menu items that is not an item. */
  readonly head?: ReactNode;
  readonly items: readonly MenuItem[];
}

export const Menu = ({ label, button, buttonClass, head, items }: MenuProps) => {
  const id = useId();
  const [open, setOpen] = useState(false);
  const frame = useRef<HTMLDivElement>(null);
  const opener = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (open) itemsIn(frame.current)[0]?.focus();
  }, [open]);
  const close = (): void => {
    setOpen(false);
    opener.current?.focus();
  };
  const onKey = (event: KeyboardEvent): void => {
    if (!open) return;
    if (event.key === 'Escape') close();
    if (moveFocus(frame.current, event.key)) event.preventDefault();
  };
  return (
    // oxlint-disable-next-line jsx-a11y/no-static-element-interactions -- it only hears what its buttons did not take
    <div
      ref={frame}
      className="relative"
      onKeyDown={onKey}
      onBlur={({ relatedTarget }) => {
        if (!frame.current?.contains(relatedTarget)) setOpen(false);
      }}
    >
      <button
        ref={opener}
        type="button"
        aria-label={label}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-controls={open ? id : undefined}
        onClick={() => setOpen(!open)}
        className={buttonClass}
      >
        {button}
      </button>
      {open && <MenuList {...{ id, label, head, items, close }} />}
    </div>
  );
};

interface MenuListProps extends Pick<MenuProps, 'label' | 'head' | 'items'> {
  readonly id: string;
  readonly close: () => void;
}

const MenuList = ({ id, label, head, items, close }: MenuListProps) => (
  <div className="absolute right-0 z-30 mt-1.5 w-60 overflow-hidden rounded-lg border border-line bg-surface shadow-lg">
    {head !== undefined && <div className="border-line border-b px-3 py-2.5">{head}</div>}
    <div id={id} role="menu" aria-label={label} className="p-1">
      {items.map((item) => (
        <button
          key={item.label}
          type="button"
          role="menuitem"
          tabIndex={-1}
          onClick={() => {
            close();
            item.onSelect();
          }}
          className={classNames(
            'block w-full rounded-md px-2.5 py-2 text-left hover:bg-sunken focus:bg-sunken sm:py-1.5',
            'focus-visible:outline-offset-0',
          )}
        >
          {item.label}
        </button>
      ))}
    </div>
  </div>
);

const itemsIn = (frame: HTMLElement | null): HTMLElement[] => [
  ...(frame?.querySelectorAll<HTMLElement>('[role="menuitem"]') ?? []),
];

/** Moves the focus between menu items. Returns true if the menu handled the key. */
const moveFocus = (frame: HTMLElement | null, key: string): boolean => {
  const items = itemsIn(frame);
  const now = items.indexOf(document.activeElement as HTMLElement);
  const next = { ArrowDown: now + 1, ArrowUp: now - 1, Home: 0, End: -1 }[key];
  if (next === undefined) return false;
  items.at(next % items.length)?.focus();
  return true;
};
