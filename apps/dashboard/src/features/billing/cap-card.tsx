// Card to view, set or remove the spend limit (the API's spend cap).
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { BillingStatus } from '@tunnel/contract';
import { type SubmitEvent, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { Notice } from '../../ui/badge.tsx';
import { Button } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { TextField } from '../../ui/field.tsx';
import { moneyText } from '../../ui/format.ts';
import { MaybeProblem } from '../../ui/problem.tsx';
import { dollarsText, parseDollars } from './parse.ts';
import { BILLING_KEY } from './queries.ts';

export interface CapCardProps {
  readonly status: BillingStatus;
  /** Usage cost of the current month in cents. Null while unknown. */
  readonly usageCents: number | null;
}

export const CapCard = ({ status, usageCents }: CapCardProps) => (
  <Card title="Spend limit" description="The maximum your usage can cost in a calendar month (UTC).">
    {status.billing_model === 'free' ? (
      <p className="text-muted">Usage is free on your plan, so no limit is needed.</p>
    ) : (
      <div className="grid gap-6 md:grid-cols-2">
        <CapForm cap={status.spend_cap_cents} usageCents={usageCents} />
        <Meaning minimum={status.monthly_minimum_cents} />
      </div>
    )}
  </Card>
);

const Meaning = ({ minimum }: { readonly minimum: number }) => (
  <ul className="list-disc space-y-1.5 pl-5 text-muted">
    <li>When the limit is reached, your tunnels stop until you raise the limit or the month ends.</li>
    <li>We email you when 80 % and 100 % are used.</li>
    <li>
      The limit applies to usage only: the {moneyText(minimum)} minimum is always due. A limit of $0 allows no usage.
    </li>
  </ul>
);

interface CapFormProps {
  readonly cap: number | null;
  readonly usageCents: number | null;
}

const CapForm = ({ cap, usageCents }: CapFormProps) => {
  const saving = useSetCap();
  const [text, setText] = useState(cap === null ? '' : dollarsText(cap));
  const [tried, setTried] = useState(false);
  const read = parseDollars(text);
  const wanted = 'cents' in read ? read.cents : null;
  const save = (cents: number | null): void => {
    if (saving.isPending) return;
    saving.mutate(cents, { onSuccess: () => setText(cents === null ? '' : dollarsText(cents)) });
  };
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    setTried(true);
    if (wanted !== null) save(wanted);
  };
  return (
    <form onSubmit={submit} noValidate className="space-y-3">
      <TextField
        label="Monthly spend limit (USD)"
        name="cap"
        inputMode="decimal"
        autoComplete="off"
        placeholder="No limit"
        value={text}
        hint={cap === null ? 'No limit set.' : `Your limit is ${moneyText(cap)}.`}
        error={tried && 'problem' in read ? read.problem : null}
        onChange={({ target }) => {
          setText(target.value);
          setTried(false);
          saving.reset();
        }}
      />
      {wanted !== null && wanted !== cap && usageCents !== null && usageCents >= wanted && (
        <Notice tone="warn">
          You have already used {moneyText(usageCents)} this month. With this limit, your tunnels stop within 60
          seconds.
        </Notice>
      )}
      <CapButtons cap={cap} saving={saving} remove={() => save(null)} />
      <MaybeProblem error={saving.error} />
    </form>
  );
};

interface CapButtonsProps {
  readonly cap: number | null;
  readonly saving: ReturnType<typeof useSetCap>;
  readonly remove: () => void;
}

const CapButtons = ({ cap, saving, remove }: CapButtonsProps) => {
  const isRemoving = saving.isPending && saving.variables === null;
  return (
    <div className="flex flex-wrap items-center gap-2">
      <Button kind="primary" type="submit" pending={saving.isPending && !isRemoving}>
        {cap === null ? 'Set limit' : 'Change limit'}
      </Button>
      {cap !== null && (
        <Button pending={isRemoving} onClick={remove}>
          Remove limit
        </Button>
      )}
      <span role="status" className="px-1 text-good">
        {saving.isSuccess && 'Saved.'}
      </span>
    </div>
  );
};

const useSetCap = () => {
  const api = useApi();
  const queries = useQueryClient();
  return useMutation({
    mutationFn: (cents: number | null) => api.setSpendCap({ spend_cap_cents: cents }),
    onSuccess: ({ spend_cap_cents }) => {
      queries.setQueryData<BillingStatus>(BILLING_KEY, (status) => status && { ...status, spend_cap_cents });
      return queries.invalidateQueries({ queryKey: BILLING_KEY, exact: true });
    },
  });
};
