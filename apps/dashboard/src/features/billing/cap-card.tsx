// The spend cap: what it does, in words, and the place to set or remove it.
import { useMutation, useQueryClient } from '@tanstack/react-query';
import type { BillingStatus } from '@tunnel/contract';
import { type SubmitEvent, useState } from 'react';
import { useApi } from '../../app/app-context.tsx';
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
  /** Of this month; null: not known. */
  readonly usageCents: number | null;
}

export const CapCard = ({ status, usageCents }: CapCardProps) => (
  <Card title="Spend cap" description="The most that the usage of a calendar month (UTC) may cost.">
    {status.billing_model === 'free' ? (
      <p className="text-muted">
        A cap is for pay as you go. On your plan usage costs nothing, so there is nothing to cap.
      </p>
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
    <li>Reached: your tunnels are closed within 60 seconds and new ones are refused. Clients end with exit code 6.</li>
    <li>They are allowed again at once when you raise or remove the cap, or when the next month begins.</li>
    <li>You get a mail at 80 % and at 100 %.</li>
    <li>
      It is compared with usage alone. The minimum of {moneyText(minimum)} is due in any case, also with a cap of $0,
      which allows no usage at all.
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
        label="Cap in dollars a month"
        name="cap"
        inputMode="decimal"
        autoComplete="off"
        placeholder="No cap"
        value={text}
        hint={cap === null ? 'There is no cap now.' : `The cap is ${moneyText(cap)} now.`}
        error={tried && 'problem' in read ? read.problem : null}
        onChange={({ target }) => {
          setText(target.value);
          setTried(false);
          saving.reset();
        }}
      />
      {wanted !== null && wanted !== cap && usageCents !== null && usageCents >= wanted && (
        <Notice tone="warn">
          Usage of this month is {moneyText(usageCents)} already: with this cap your tunnels are closed within 60
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
        {cap === null ? 'Set cap' : 'Change cap'}
      </Button>
      {cap !== null && (
        <Button pending={isRemoving} onClick={remove}>
          Remove cap
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
