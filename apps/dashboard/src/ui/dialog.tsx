// Modal dialog. Uses the browser's dialog element, so that focus, the Escape key and the page behind behave as users expect.
import {
  type KeyboardEvent,
  type MouseEvent,
  type ReactNode,
  type RefObject,
  useEffect,
  useId,
  useLayoutEffect,
  useRef,
} from 'react';
import { classNames } from './class-names.ts';
import { Icon } from './icon.tsx';

export interface DialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly title: string;
  readonly children: ReactNode;
  /** Buttons at the bottom of the dialog. */
  readonly footer?: ReactNode;
  /** False if only the dialog's own buttons close the dialog, because its content is shown only once. */
  readonly dismissable?: boolean;
  /** Makes the dialog wider, for long texts and code. */
  readonly wide?: boolean;
}

export const Dialog = ({ open, onClose, title, children, footer, dismissable = true, wide = false }: DialogProps) => {
  const id = useId();
  const ref = useOpened(open);
  const pressOutside = (event: MouseEvent): void => {
    if (dismissable && event.target === ref.current) onClose();
  };
  // Handles Escape as a key press, because browsers honor a canceled close request only once: the second Escape would close the dialog
  // regardless.
  const pressKey = (event: KeyboardEvent): void => {
    if (event.key !== 'Escape') return;
    event.preventDefault();
    if (dismissable) onClose();
  };
  const stay = (): void => {
    if (!open) return;
    if (dismissable) onClose();
    else ref.current?.showModal();
  };
  return (
    // oxlint-disable-next-line jsx-a11y/no-noninteractive-element-interactions -- Escape does the same
    <dialog
      ref={ref}
      aria-labelledby={id}
      onClick={pressOutside}
      onKeyDown={pressKey}
      onClose={stay}
      onCancel={(event) => {
        event.preventDefault();
        if (dismissable) onClose();
      }}
      className={classNames(
        'm-auto rounded-xl border border-line bg-surface p-0 text-ink',
        wide ? 'w-[min(48rem,calc(100vw-2rem))]' : 'w-[min(32rem,calc(100vw-2rem))]',
      )}
    >
      {open && (
        <div>
          <div className="flex items-start justify-between gap-4 px-5 pt-5">
            <h2 id={id} className="min-w-0 font-semibold text-lg">
              {title}
            </h2>
            {dismissable && <CloseButton onClose={onClose} />}
          </div>
          <div className="space-y-4 px-5 pt-3 pb-5">{children}</div>
          {footer !== undefined && (
            <div className="sticky bottom-0 flex flex-wrap justify-end gap-2 border-line border-t bg-page px-5 py-3">
              {footer}
            </div>
          )}
        </div>
      )}
    </dialog>
  );
};

/** Opens and closes the browser's dialog element according to `open`. */
const useOpened = (open: boolean): RefObject<HTMLDialogElement | null> => {
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    if (open && dialog?.open === false) {
      dialog.showModal();
      // Focuses the first text field, because the user opened the dialog to type. By default, browsers focus the Close button.
      dialog.querySelector<HTMLElement>('input:not([type="radio"])')?.focus();
    }
    if (!open && dialog?.open === true) dialog.close();
  }, [open]);
  // A dialog that is removed while open is closed first, so that the browser returns the focus to the previously focused element.
  useLayoutEffect(() => {
    const dialog = ref.current;
    return () => dialog?.close();
  }, []);
  return ref;
};

const CloseButton = ({ onClose }: Pick<DialogProps, 'onClose'>) => (
  <button
    type="button"
    aria-label="Close"
    onClick={onClose}
    className="-mr-1.5 grid size-8 shrink-0 place-items-center rounded-md text-muted hover:bg-sunken hover:text-ink"
  >
    <Icon name="cross" />
  </button>
);
