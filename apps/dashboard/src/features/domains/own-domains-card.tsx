// Card with a table of the account's custom domains. Each row shows the state and the certificate and links to the domain's page.
import { useQuery } from '@tanstack/react-query';
import { Link } from '@tanstack/react-router';
import type { OwnDomainView } from '@tunnel/contract';
import { type ReactNode, useMemo, useState } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { Loaded } from '../../shared/panel-boundary.tsx';
import { AddressTools } from '../../ui/address-tools.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Button, buttonClass } from '../../ui/button.tsx';
import { Card } from '../../ui/card.tsx';
import { Empty } from '../../ui/empty-state.tsx';
import { plural } from '../../ui/format.ts';
import { useNow } from '../../ui/hooks.ts';
import { type Column, Table } from '../../ui/table.tsx';
import { Day } from '../../ui/values.tsx';
import { certificateOf, foundText, stateOf } from './own-domain-texts.ts';
import { domainLimitQuery, domainLimitText, domainsQuery, hasCertificate, hrefOf } from './own-domains.ts';
import { RemoveDomainDialog } from './remove-domain-dialog.tsx';

interface OwnDomainsCardProps {
  /** Button to add a domain, shown in the empty table. */
  readonly add: ReactNode;
  /** True if visitors cannot reach this server from other computers, so that adding domains is not offered. Undefined while unknown. */
  readonly isLocal: boolean | undefined;
}

export const OwnDomainsCard = ({ add, isLocal }: OwnDomainsCardProps) => {
  const domains = useQuery(domainsQuery(useApi()));
  const [removing, setRemoving] = useState<OwnDomainView | null>(null);
  return (
    <>
      <Loaded query={domains} title="Couldn't load your domains" pending={<DomainsCard onRemove={setRemoving} />}>
        {(rows) => {
          if (rows.length > 0 || isLocal === false) return <DomainsCard {...{ rows, add }} onRemove={setRemoving} />;
          return isLocal === true ? <LocalServer /> : <DomainsCard onRemove={setRemoving} />;
        }}
      </Loaded>
      <RemoveDomainDialog domain={removing} onClose={() => setRemoving(null)} />
    </>
  );
};

const LocalServer = () => (
  <Card padded={false}>
    <Empty icon="domains" title="Custom domains need a public server">
      <p>
        This server is only reachable from your computer, so DNS records cannot point to it. On a public machine, start
        the server with <code className="font-mono text-sm">npm start -- --public DOMAIN</code>.
      </p>
      <p className="mt-2">
        Names below this server's domain work without DNS changes:{' '}
        <Link to="/names" className="rounded-sm text-accent underline underline-offset-2">
          see Names
        </Link>
        .
      </p>
    </Empty>
  </Card>
);

interface DomainsCardProps {
  /** Domains in the table. Undefined while loading. */
  readonly rows?: readonly OwnDomainView[];
  readonly add?: ReactNode;
  readonly onRemove: (domain: OwnDomainView) => void;
}

const DomainsCard = ({ rows, add, onRemove }: DomainsCardProps) => {
  const plan = useQuery(domainLimitQuery(useApi())).data;
  const columns = useMemo(() => columnsFor(onRemove), [onRemove]);
  return (
    <Card
      title="Your domains"
      // A non-breaking space reserves the line until the description is known.
      description={
        plan === undefined || rows === undefined ? '\u00a0' : domainLimitText(rows.length, plan.plan, plan.limit)
      }
      padded={false}
    >
      <Table
        caption="Your domains"
        rows={rows}
        columns={columns}
        skeletonRows={1}
        rowKey={({ id }) => id}
        empty={
          <Empty icon="domains" title="No domains yet" action={add}>
            Publish tunnels on your own domain, such as shop.example.com. Add a DNS record, and we issue the certificate
            for you.
          </Empty>
        }
      />
    </Card>
  );
};

const columnsFor = (onRemove: DomainsCardProps['onRemove']): readonly Column<OwnDomainView>[] => [
  { key: 'name', header: 'Domain', isHead: true, cell: (domain) => <Name domain={domain} /> },
  { key: 'state', header: 'State', cell: (domain) => <State domain={domain} /> },
  { key: 'certificate', header: 'Certificate', cell: (domain) => <Certificate domain={domain} /> },
  { key: 'use', header: 'Use', cell: (domain) => <Use domain={domain} /> },
  { key: 'action', header: 'Action', align: 'end', cell: (domain) => <Actions {...{ domain, onRemove }} /> },
];

const Name = ({ domain }: { readonly domain: OwnDomainView }) => {
  const href = hrefOf(domain);
  return (
    <span className="inline-flex min-w-0 items-center gap-1 sm:min-w-56">
      <Link
        to="/domains/$id"
        params={{ id: domain.id }}
        className="wrap-anywhere rounded-sm hover:underline hover:underline-offset-2"
      >
        {domain.name}
      </Link>
      <AddressTools text={href ?? domain.name} href={href} />
    </span>
  );
};

const State = ({ domain }: { readonly domain: OwnDomainView }) => {
  const { tone, short } = stateOf(domain);
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2 gap-y-0.5 max-sm:justify-end">
      <Badge tone={tone}>{short}</Badge>
      {domain.state === 'pending' && domain.records.length > 1 && (
        <span className="whitespace-nowrap text-muted text-sm">{foundText(domain.records)}</span>
      )}
    </span>
  );
};

const Certificate = ({ domain }: { readonly domain: OwnDomainView }) => {
  const { tone, short } = useCertificate(domain);
  const end = domain.certificate?.not_after ?? null;
  if (domain.certificate === null) return <span className="whitespace-nowrap text-muted">None</span>;
  return (
    <span className="inline-flex flex-wrap items-center gap-x-2 gap-y-0.5 max-sm:justify-end">
      <Badge tone={tone}>{short}</Badge>
      {hasCertificate(domain.certificate) && end !== null && (
        <span className="whitespace-nowrap text-muted text-sm">
          until <Day at={end} />
        </span>
      )}
    </span>
  );
};

/**
 * Returns the state of the certificate. The component renders again only when the state changes, such as at expiry, and not every second.
 */
const useCertificate = (domain: OwnDomainView) => {
  const short = useNow((now) => certificateOf(domain, now).short);
  const tone = useNow((now) => certificateOf(domain, now).tone);
  return { short, tone };
};

const Use = ({ domain: { active_tunnels: active } }: { readonly domain: OwnDomainView }) =>
  active > 0 ? (
    <Link to="/tunnels" search={{ state: 'active' }} className="rounded-full" title={plural(active, 'live tunnel')}>
      <Badge tone="accent" dot>
        In use
      </Badge>
    </Link>
  ) : (
    <span className="whitespace-nowrap text-muted">No tunnel</span>
  );

interface ActionsProps {
  readonly domain: OwnDomainView;
  readonly onRemove: DomainsCardProps['onRemove'];
}

const Actions = ({ domain, onRemove }: ActionsProps) => {
  const word = domain.state === 'verified' ? 'Details' : 'Set up';
  return (
    <span className="inline-flex flex-wrap justify-end gap-2 sm:flex-nowrap">
      <Link
        to="/domains/$id"
        params={{ id: domain.id }}
        aria-label={`${word}: ${domain.name}`}
        className={buttonClass('secondary', 'small')}
      >
        {word}
      </Link>
      <Button size="small" kind="quiet" aria-label={`Remove ${domain.name}`} onClick={() => onRemove(domain)}>
        Remove
      </Button>
    </span>
  );
};
