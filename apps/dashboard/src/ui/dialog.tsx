// A dialog: the browser's own, so that focus, Escape and the page behind it behave.
import { type MouseEvent, type ReactNode, useEffect, useId, useRef } from 'react';
import { Icon } from './icon.tsx';

export interface DialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
  readonly title: string;
  readonly children: ReactNode;
  /** Buttons. */
  readonly footer?: ReactNode;
  /** false: it goes away by its own buttons alone, because what it shows is shown once. */
  readonly dismissable?: boolean;
}

export const Dialog = ({ open, onClose, title, children, footer, dismissable = true }: DialogProps) => {
  const id = useId();
  const ref = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const dialog = ref.current;
    if (open && dialog?.open === false) dialog.showModal();
    if (!open && dialog?.open === true) dialog.close();
  }, [open]);
  const pressOutside = (event: MouseEvent): void => {
    if (dismissable && event.target === ref.current) onClose();
  };
  return (
    // oxlint-disable-next-line jsx-a11y/click-events-have-key-events, jsx-a11y/no-noninteractive-element-interactions -- Escape does the same
    <dialog
      ref={ref}
      aria-labelledby={id}
      onClick={pressOutside}
      onCancel={(event) => {
        event.preventDefault();
        if (dismissable) onClose();
      }}
      className="m-auto w-[min(32rem,calc(100vw-2rem))] rounded-xl border border-line bg-surface p-0 text-ink"
    >
      {open && (
        <div>
          <div className="flex items-start justify-between gap-4 px-5 pt-5">
            <h2 id={id} className="font-semibold text-lg">
              {title}
            </h2>
            {dismissable && (
              <button
                type="button"
                aria-label="Close"
                onClick={onClose}
                className="-mr-1.5 grid size-8 place-items-center rounded-md text-muted hover:bg-sunken hover:text-ink"
              >
                <Icon name="cross" />
              </button>
            )}
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
