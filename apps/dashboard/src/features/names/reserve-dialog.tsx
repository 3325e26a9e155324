// Dialog that reserves a name or a port, then shows the command to use it.
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query';
import type { NewReservation, Reservation, ReservationKind, UsageRegion } from '@tunnel/contract';
import { useEffect, useId, useRef, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { regionsQuery } from '../../api/queries.ts';
import { tunnelCommand } from '../../shared/client-commands.ts';
import { InstallClient } from '../../shared/install-client.tsx';
import { Button } from '../../ui/button.tsx';
import { Choice } from '../../ui/choice.tsx';
import { Dialog } from '../../ui/dialog.tsx';
import { CommandLine } from '../../ui/empty-state.tsx';
import { describedBy, FieldFrame, inputClass, TextField } from '../../ui/field.tsx';
import { FieldsForm } from '../../ui/fields-form.tsx';
import { isFault, Problem } from '../../ui/problem.tsx';
import { fieldProblem, problemText } from '../../ui/problem-text.ts';
import { addressText, clientWords, nameOf, RESERVATIONS_KEY, serverOf } from './reservations.ts';

export interface ReserveDialogProps {
  readonly open: boolean;
  readonly onClose: () => void;
}

const KINDS = [
  { value: 'subdomain', label: 'Name' },
  { value: 'tcp', label: 'TCP port' },
  { value: 'udp', label: 'UDP port' },
] as const satisfies readonly { value: ReservationKind; label: string }[];

export const ReserveDialog = ({ open, onClose }: ReserveDialogProps) => {
  const api = useApi();
  const queries = useQueryClient();
  const form = useId();
  const reserving = useMutation({
    mutationFn: (wanted: NewReservation) => api.reserve(wanted),
    onSuccess: () => queries.invalidateQueries({ queryKey: RESERVATIONS_KEY }),
  });
  const close = (): void => {
    onClose();
    reserving.reset();
  };
  const made = reserving.data;
  const footer =
    made === undefined ? (
      <>
        <Button disabled={reserving.isPending} onClick={close}>
          Cancel
        </Button>
        <Button kind="primary" type="submit" form={form} pending={reserving.isPending}>
          Reserve
        </Button>
      </>
    ) : (
      <Button kind="primary" onClick={close}>
        Done
      </Button>
    );
  return (
    <Dialog
      {...{ open, onClose: close, footer, dismissable: !reserving.isPending }}
      title={made === undefined ? 'Reserve a name or a port' : `${nameOf(made)} is reserved`}
    >
      {made === undefined ? <ReserveForm id={form} reserving={reserving} /> : <Reserved made={made} />}
    </Dialog>
  );
};

interface ReserveFormProps {
  readonly id: string;
  readonly reserving: {
    readonly isPending: boolean;
    readonly error: unknown;
    readonly mutate: (wanted: NewReservation) => void;
    readonly reset: () => void;
  };
}

const ReserveForm = ({ id, reserving: { isPending, error, mutate, reset } }: ReserveFormProps) => {
  const regions = useQuery(regionsQuery(useApi())).data ?? NO_REGIONS;
  const [kind, setKind] = useState<ReservationKind>('subdomain');
  const [label, setLabel] = useState('');
  const [tried, setTried] = useState(false);
  const isName = kind === 'subdomain';
  const missing = isName && tried && label.trim() === '' ? 'Enter a name' : null;
  const atLabel = missing ?? labelProblem(error);
  const atRegion = fieldProblem(error, 'region_id');
  const choose = (next: ReservationKind): void => {
    setKind(next);
    setLabel('');
    setTried(false);
    reset();
  };
  const submit = (field: (name: string) => string): void => {
    setTried(true);
    const wanted = label.trim();
    if (isName && wanted === '') return;
    const region = field('region');
    mutate({ kind, ...(wanted === '' ? {} : { label: wanted }), ...(region === '' ? {} : { region_id: region }) });
  };
  return (
    <FieldsForm {...{ id, pending: isPending, onSubmit: submit }} error={missing ?? error} className="space-y-4">
      <Choice label="Type" value={kind} options={KINDS} onChange={choose} />
      <TextField
        key={kind}
        label={isName ? 'Name' : 'Port'}
        name="label"
        value={label}
        inputMode={isName ? 'text' : 'numeric'}
        autoComplete="off"
        autoCapitalize="none"
        autoCorrect="off"
        spellCheck={false}
        placeholder={isName ? 'shop' : 'Any free port'}
        hint={isName ? <AddressHint label={label.trim()} region={regions[0]} /> : 'Leave empty for any free port'}
        error={atLabel}
        onChange={({ target }) => {
          setLabel(target.value);
          setTried(false);
          if (error != null) reset();
        }}
      />
      {!isName && regions.length > 1 && <RegionField regions={regions} error={atRegion} />}
      {error != null && atLabel === null && atRegion === null && <Problem error={error} />}
    </FieldsForm>
  );
};

const NO_REGIONS: readonly UsageRegion[] = [];

/** Returns the error message for the field of the name or port. Null if the error has a different cause. */
const labelProblem = (error: unknown): string | null =>
  isFault(
    error,
    'TUNNEL_SUBDOMAIN_IN_USE',
    'TUNNEL_SUBDOMAIN_INVALID',
    'TUNNEL_PORT_IN_USE',
    'TUNNEL_PORT_OUT_OF_RANGE',
  )
    ? problemText(error)
    : fieldProblem(error, 'label');

/** Preview of the public URL while the user types a name. */
const AddressHint = ({ label, region }: { readonly label: string; readonly region: UsageRegion | undefined }) => {
  if (region === undefined || region.http_url === '') return <>Letters a-z, digits and hyphens</>;
  return (
    <span className="wrap-anywhere">
      Public URL: {(label || 'shop').toLowerCase()}.{new URL(region.http_url).host}
    </span>
  );
};

interface RegionFieldProps {
  readonly regions: readonly UsageRegion[];
  readonly error: string | null;
}

const RegionField = ({ regions, error }: RegionFieldProps) => {
  const id = useId();
  return (
    <FieldFrame {...{ id, error }} label="Region" hint="A port is reserved in one region">
      <select name="region" {...describedBy(id, { hint: '', error })} className={inputClass}>
        {regions.map(({ region_id, name }) => (
          <option key={region_id} value={region_id}>
            {name === '' || name === region_id ? region_id : `${name} (${region_id})`}
          </option>
        ))}
      </select>
    </FieldFrame>
  );
};

const Reserved = ({ made }: { readonly made: Reservation }) => {
  const { data: regions, isPending } = useQuery(regionsQuery(useApi()));
  const address = useRef<HTMLParagraphElement>(null);
  // The form's submit button is gone, so the keyboard focus moves to the address.
  useEffect(() => address.current?.focus(), []);
  return (
    <>
      <p ref={address} tabIndex={-1} className="focus-visible:outline-none">
        <span className="wrap-anywhere font-medium">{addressText(made) || nameOf(made)}</span> is reserved until you
        release it.
      </p>
      <div>
        <p className="mb-1.5">Start a tunnel with it:</p>
        <CommandLine
          command={isPending ? null : tunnelCommand(clientWords(made), serverOf(made, regions ?? NO_REGIONS))}
          label="Copy the command"
        />
      </div>
      <InstallClient />
    </>
  );
};
