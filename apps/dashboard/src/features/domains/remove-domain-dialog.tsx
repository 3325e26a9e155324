// Dialog that removes a custom domain. Lists the consequences and asks the user to type the domain's name.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { OwnDomainView } from '@tunnel/contract';
import { useId, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { TextField } from '../../ui/field.tsx';
import { FieldsForm } from '../../ui/fields-form.tsx';
import { plural } from '../../ui/format.ts';
import { MaybeProblem } from '../../ui/problem.tsx';
import { dropDomain, isGone, typedName } from './own-domains.ts';

export interface RemoveDomainDialogProps {
  /** Domain to remove. Null while the dialog is closed. */
  readonly domain: OwnDomainView | null;
  readonly onClose: () => void;
  /** Called after the domain was removed, so that the domain's page can be left. */
  readonly onRemoved?: () => void;
}

export const RemoveDomainDialog = ({ domain, onClose, onRemoved }: RemoveDomainDialogProps) => {
  const form = useId();
  const [mismatch, setMismatch] = useState<string | null>(null);
  const removing = useRemove();
  const pending = removing.isPending;
  const close = (): void => {
    onClose();
    setMismatch(null);
    removing.reset();
  };
  const submit = (typed: string): void => {
    if (domain === null) return;
    const isSame = typedName(typed) === domain.name;
    setMismatch(isSame ? null : `Type ${domain.name}`);
    const done = (): void => {
      close();
      onRemoved?.();
    };
    if (isSame) removing.mutate(domain, { onSuccess: done });
  };
  return (
    <Dialog
      {...{ open: domain !== null, onClose: close, dismissable: !pending }}
      title={domain === null ? '' : `Remove ${domain.name}?`}
      footer={
        <>
          <Button disabled={pending} onClick={close}>
            Cancel
          </Button>
          <Button kind="danger" type="submit" form={form} pending={pending}>
            Remove
          </Button>
        </>
      }
    >
      {domain !== null && (
        <>
          <Consequences domain={domain} />
          <FieldsForm
            {...{ id: form, error: mismatch, pending, className: '' }}
            onSubmit={(field) => submit(field('name'))}
          >
            <TextField
              {...{ label: `Type ${domain.name} to confirm`, name: 'name', error: mismatch }}
              {...{ autoComplete: 'off', autoCapitalize: 'none', autoCorrect: 'off', spellCheck: false }}
            />
          </FieldsForm>
          <MaybeProblem error={removing.error} />
        </>
      )}
    </Dialog>
  );
};

const useRemove = () => {
  const api = useApi();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: async ({ id }: OwnDomainView) => {
      try {
        await api.removeDomain(id);
      } catch (error) {
        // The domain was already removed, for example in another tab, so the request counts as successful.
        if (!isGone(error)) throw error;
      }
    },
    onSuccess: (_, { id }) => void dropDomain(queries, id),
  });
};

const Consequences = ({ domain: { active_tunnels: active, certificate } }: { readonly domain: OwnDomainView }) => (
  <ul className="list-disc space-y-1.5 pl-5">
    {active > 0 && <li>{plural(active, 'live tunnel')} on this domain will be closed within 2 seconds.</li>}
    <li>
      Visitors can no longer reach the domain
      {certificate === null ? '.' : '. The certificate and its private key are deleted.'}
    </li>
    <li>
      Your DNS records are not changed. Remove them at your DNS provider, or keep them to add the domain again later.
    </li>
  </ul>
);
