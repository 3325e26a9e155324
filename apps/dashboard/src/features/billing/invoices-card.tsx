// Card with the account's invoices, as reported by the payment processor.
import { useQuery } from '@tanstack/react-query';
import { useMemo } from 'react';
import { useApi } from '../../api/app-context.tsx';
import { LoadedCard } from '../../shared/loaded-card.tsx';
import { Badge } from '../../ui/badge.tsx';
import { Empty } from '../../ui/empty-state.tsx';
import { momentText, utcDateText } from '../../ui/format.ts';
import { Icon } from '../../ui/icon.tsx';
import { type Column, Table } from '../../ui/table.tsx';
import { type Invoice, readInvoice } from './parse.ts';
import { invoicesQuery } from './queries.ts';

export const InvoicesCard = () => {
  const invoices = useQuery(invoicesQuery(useApi()));
  return (
    <LoadedCard
      title="Invoices"
      description="Monthly, newest first"
      query={invoices}
      problem="Couldn't load your invoices"
      pending={<InvoiceTable />}
    >
      {(list) => <InvoiceTable list={list} />}
    </LoadedCard>
  );
};

const InvoiceTable = ({ list }: { readonly list?: readonly Readonly<Record<string, unknown>>[] }) => {
  const rows = useMemo(() => list?.map(readInvoice), [list]);
  return (
    <Table
      caption="Invoices"
      columns={COLUMNS}
      rows={rows}
      rowKey={({ key }) => key}
      skeletonRows={2}
      empty={
        <div className="border-line border-t">
          <Empty icon="billing" title="No invoices yet">
            Your first invoice is issued on the first day of the month after you subscribe.
          </Empty>
        </div>
      }
    />
  );
};

const COLUMNS: readonly Column<Invoice>[] = [
  { key: 'number', header: 'Number', isHead: true, cell: ({ number }) => <span className="break-all">{number}</span> },
  {
    key: 'date',
    header: 'Date (UTC)',
    cell: ({ at }) => (at === null ? '—' : <time title={momentText(at)}>{utcDateText(at)}</time>),
  },
  { key: 'status', header: 'Status', cell: ({ status }) => <Badge tone={status.tone}>{status.text}</Badge> },
  { key: 'amount', header: 'Amount', align: 'end', cell: ({ amount }) => amount ?? '—' },
  { key: 'link', header: 'Document', align: 'end', cell: (invoice) => <InvoiceLink invoice={invoice} /> },
];

const InvoiceLink = ({ invoice }: { readonly invoice: Invoice }) =>
  invoice.url === null ? (
    <span className="text-muted">—</span>
  ) : (
    <a
      href={invoice.url}
      target="_blank"
      rel="noreferrer"
      aria-label={`Open invoice ${invoice.number}, in a new tab`}
      className="inline-flex items-center gap-1 rounded-sm text-accent hover:underline"
    >
      Open <Icon name="outside" />
    </a>
  );
