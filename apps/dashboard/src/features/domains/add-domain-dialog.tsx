// Dialog that adds a custom domain, then opens the domain's page with the DNS records to set.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import { useNavigate } from '@tanstack/react-router';
import type { NewDomain } from '@tunnel/contract';
import { useId, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { Button } from '../../ui/button.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { CheckField, TextField } from '../../ui/field.tsx';
import { FieldsForm } from '../../ui/fields-form.tsx';
import { isFault, Problem } from '../../ui/problem.tsx';
import { fieldProblem, problemText } from '../../ui/problem-text.ts';
import { keepDomain, typedName } from './own-domains.ts';

export interface AddDomainDialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
}

export const AddDomainDialog = ({ open, onClose }: AddDomainDialogProps) => {
  const form = useId();
  const adding = useAdd();
  const { isPending: pending } = adding;
  const close = (): void => {
    onClose();
    adding.reset();
  };
  return (
    <Dialog
      {...{ open, onClose: close, dismissable: !pending }}
      title="Add a domain"
      footer={
        <>
          <Button disabled={pending} onClick={close}>
            Cancel
          </Button>
          <Button kind="primary" type="submit" form={form} pending={pending}>
            Add domain
          </Button>
        </>
      }
    >
      <AddForm id={form} adding={adding} />
    </Dialog>
  );
};

const useAdd = () => {
  const api = useApi();
  const queries = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: (wanted: NewDomain) => api.addDomain(wanted),
    onSuccess: (added) => {
      void keepDomain(queries, added);
      // For a domain that the account already has, the API returns the existing domain.
      return navigate({ to: '/domains/$id', params: { id: added.id } });
    },
  });
};

interface AddFormProps {
  readonly id: string;
  readonly adding: Pick<ReturnType<typeof useAdd>, 'isPending' | 'error' | 'mutate' | 'reset'>;
}

const AddForm = ({ id, adding: { isPending, error, mutate, reset } }: AddFormProps) => {
  const [name, setName] = useState('');
  const [certificate, setCertificate] = useState(true);
  const [tried, setTried] = useState(false);
  const wanted = typedName(name);
  const missing = tried && wanted === '' ? 'Enter a domain' : null;
  const atName = missing ?? nameProblem(error);
  const submit = (): void => {
    setTried(true);
    if (wanted !== '') mutate({ name: wanted, certificate });
  };
  return (
    <FieldsForm {...{ id, pending: isPending, onSubmit: submit }} error={missing ?? error} className="space-y-4">
      <TextField
        label="Domain"
        name="name"
        value={name}
        inputMode="url"
        autoComplete="off"
        autoCapitalize="none"
        autoCorrect="off"
        spellCheck={false}
        placeholder="shop.example.com"
        hint="A domain you manage the DNS records of. *.shop.example.com covers every name directly below shop.example.com."
        error={atName}
        onChange={({ target }) => {
          setName(target.value);
          setTried(false);
          if (error != null) reset();
        }}
      />
      <CheckField
        label="Issue a certificate"
        name="certificate"
        hint="Lets visitors use https. Renewed automatically. Not needed if your service has its own certificate (tunnel tls)."
        checked={certificate}
        disabled={isPending}
        onChange={setCertificate}
      />
      {error != null && atName === null && (
        <Problem error={error}>
          {isFault(error, 'DOMAIN_LIMIT') && (
            <p className="text-muted">Remove a domain first, or switch to a larger plan.</p>
          )}
        </Problem>
      )}
    </FieldsForm>
  );
};

/** Returns the error message for the domain name field. Null if the error has a different cause. */
const nameProblem = (error: unknown): string | null =>
  isFault(error, 'DOMAIN_INVALID') ? problemText(error) : fieldProblem(error, 'name');
