// Dialog that edits a captured request (method, path, headers and body) and sends the result. Redacted values are sent with their
// original content unless overwritten.
import type { CapturedRequest, ReplayEdit } from '@tunnel/contract';
import { type ComponentProps, type SubmitEvent, useEffect, useId, useRef, useState } from 'react';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { describedBy, FieldFrame, type FieldText, TextField } from '../../ui/field.tsx';
import { MaybeProblem } from '../../ui/problem.tsx';
import { type DraftResult, draftFromRequest, type RequestDraft, readDraft } from './request-edit.ts';

export interface EditReplayDialogProps {
  readonly request: CapturedRequest;
  readonly isPending: boolean;
  readonly error: unknown;
  readonly onSend: (edit: ReplayEdit) => void;
  readonly onClose: () => void;
}

export const EditReplayDialog = ({ request, isPending, error, onSend, onClose }: EditReplayDialogProps) => {
  const form = useId();
  const fields = useRef<HTMLFormElement>(null);
  const [initial] = useState<RequestDraft>(() => draftFromRequest(request));
  const [draft, setDraft] = useState(initial);
  const [result, setResult] = useState<DraftResult | null>(null);
  const change = (some: Partial<RequestDraft>): void => {
    setDraft({ ...draft, ...some });
    setResult(null);
  };
  const send = (event: SubmitEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const made = readDraft(request, draft);
    setResult(made);
    if (made.kind === 'edit' && !isPending) onSend(made.edit);
  };
  const isWrong = result?.kind === 'problem';
  useEffect(() => {
    if (isWrong) fields.current?.querySelector<HTMLElement>('[aria-invalid="true"]')?.focus();
  }, [isWrong, result]);
  return (
    <Dialog
      open
      wide
      // After an edit, a click outside the dialog does not close it, because the edit would be lost.
      dismissable={draft === initial}
      onClose={onClose}
      title="Edit and replay"
      footer={
        <>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" form={form} pending={isPending}>
            Send
          </Button>
        </>
      }
    >
      <form ref={fields} id={form} onSubmit={send} className="space-y-4">
        <Fields {...{ draft, change, result }} />
        <MaybeProblem error={error} />
      </form>
    </Dialog>
  );
};

interface FieldsProps {
  readonly draft: RequestDraft;
  readonly change: (some: Partial<RequestDraft>) => void;
  readonly result: DraftResult | null;
}

const Fields = ({ draft, change, result }: FieldsProps) => {
  const problemOf = (field: string): string | null =>
    result?.kind === 'problem' && result.field === field ? result.text : null;
  const plain = { autoCapitalize: 'none', autoCorrect: 'off', autoComplete: 'off', spellCheck: false } as const;
  return (
    <>
      <div className="grid gap-4 sm:grid-cols-[8rem_minmax(0,1fr)]">
        <TextField
          label="Method"
          value={draft.method}
          error={problemOf('method')}
          onChange={({ target }) => change({ method: target.value })}
          className="font-mono"
          {...plain}
        />
        <TextField
          label="Path"
          value={draft.path}
          error={problemOf('path')}
          onChange={({ target }) => change({ path: target.value })}
          className="font-mono"
          {...plain}
        />
      </div>
      <TextAreaField
        label="Headers"
        hint="One header per line. [redacted] keeps the original value."
        value={draft.headers}
        error={problemOf('headers')}
        rows={7}
        onChange={({ target }) => change({ headers: target.value })}
        {...plain}
      />
      {draft.body === null ? (
        <p className="text-muted">The body is not text and is sent unchanged.</p>
      ) : (
        <TextAreaField
          label="Body"
          value={draft.body}
          rows={9}
          onChange={({ target }) => change({ body: target.value })}
          {...plain}
        />
      )}
    </>
  );
};

interface TextAreaFieldProps extends Omit<ComponentProps<'textarea'>, 'id'>, FieldText {}

const TextAreaField = ({ label, hint, error = null, ...area }: TextAreaFieldProps) => {
  const id = useId();
  return (
    <FieldFrame {...{ id, label, hint, error }}>
      <textarea
        {...area}
        {...describedBy(id, { hint, error })}
        className="block w-full resize-y whitespace-pre rounded-md border border-edge bg-surface px-3 py-2 font-mono text-ink text-sm hover:border-ink focus-visible:border-accent focus-visible:outline-offset-0 aria-invalid:border-bad"
      />
    </FieldFrame>
  );
};
