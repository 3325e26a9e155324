// Dialog that releases a name or port. Lists the consequences and asks the user to type the name.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { Reservation } from '@tunnel/contract';
import { useId, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { TextField } from '../../ui/field.tsx';
import { FieldsForm } from '../../ui/fields-form.tsx';
import { isFault, MaybeProblem } from '../../ui/problem.tsx';
import { keptAfterRelease, nameOf, RESERVATIONS_KEY } from './reservations.ts';

export interface ReleaseDialogProps {
  /** Name or port to release. Null while the dialog is closed. */
  readonly one: Reservation | null;
  readonly onClose: () => void;
}

export const ReleaseDialog = ({ one, onClose }: ReleaseDialogProps) => {
  const form = useId();
  const [mismatch, setMismatch] = useState<string | null>(null);
  const releasing = useRelease();
  const pending = releasing.isPending;
  const close = (): void => {
    onClose();
    setMismatch(null);
    releasing.reset();
  };
  const submit = (typed: string): void => {
    if (one === null) return;
    const isSame = typed.trim().toLowerCase() === nameOf(one);
    setMismatch(isSame ? null : `Type ${nameOf(one)}`);
    if (isSame) releasing.mutate(one, { onSuccess: close });
  };
  return (
    <Dialog
      {...{ open: one !== null, onClose: close, dismissable: !pending }}
      title={one === null ? '' : `Release ${nameOf(one)}?`}
      footer={
        <>
          <Button disabled={pending} onClick={close}>
            Cancel
          </Button>
          <Button kind="danger" type="submit" form={form} pending={pending}>
            Release
          </Button>
        </>
      }
    >
      {one !== null && (
        <>
          <Consequences one={one} />
          <FieldsForm
            {...{ id: form, error: mismatch, pending, className: '' }}
            onSubmit={(field) => submit(field('name'))}
          >
            <TextField
              {...{ label: `Type ${nameOf(one)} to confirm`, name: 'name', error: mismatch }}
              {...{ autoComplete: 'off', autoCapitalize: 'none', autoCorrect: 'off', spellCheck: false }}
            />
          </FieldsForm>
          <MaybeProblem error={releasing.error} />
        </>
      )}
    </Dialog>
  );
};

const useRelease = () => {
  const api = useApi();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ id }: Reservation) => {
      try {
        await api.release(id);
      } catch (error) {
        // The name was already released, for example in another tab, so the request counts as successful.
        if (!isFault(error, 'RESERVATION_UNKNOWN')) throw error;
      }
    },
    onSuccess: () => queries.invalidateQueries({ queryKey: RESERVATIONS_KEY }),
  });
};

const Consequences = ({ one }: { readonly one: Reservation }) => {
  const kept = keptAfterRelease(one);
  return (
    <ul className="list-disc space-y-1.5 pl-5">
      {one.active_tunnels > 0 && (
        <li>The tunnel in use keeps working. The release takes effect when the tunnel closes.</li>
      )}
      {kept !== '' && <li>For {kept}, no other account can take it, and you can take it back here.</li>}
      <li>
        {kept === '' ? 'Any account can take it immediately' : 'After that, any account can take it'} and will receive
        the visitors, cookies and webhooks still sent to this address.
      </li>
    </ul>
  );
};
