// Table with a caption. On phones, each row becomes a card, and each cell shows the name of its column.
import type { ReactNode } from 'react';
import { Skeleton } from './card.tsx';
import { classNames } from './class-names.ts';

export interface Column<Row> {
  readonly key: string;
  readonly header: string;
  readonly cell: (row: Row) => ReactNode;
  /** Alignment of the column. Use `end` for numbers. */
  readonly align?: 'start' | 'end';
  /** True for the cell that names the row, which becomes a row header. */
  readonly isHead?: boolean;
  readonly className?: string;
}

export interface TableProps<Row> {
  /** Caption for screen readers. Other users see the title of the card around the table. */
  readonly caption: string;
  readonly columns: readonly Column<Row>[];
  /** Rows of the table. Undefined while loading. */
  readonly rows: readonly Row[] | undefined;
  readonly rowKey: (row: Row) => string;
  /** Content shown instead of a table without rows. */
  readonly empty?: ReactNode;
  readonly skeletonRows?: number;
}

export const Table = <Row,>({ caption, columns, rows, rowKey, empty, skeletonRows = 3 }: TableProps<Row>) => {
  if (rows?.length === 0 && empty !== undefined) return empty;
  return (
    <div className="overflow-x-auto">
      <table className="cards w-full border-collapse text-left" aria-busy={rows === undefined}>
        <caption className="sr-only">{caption}</caption>
        <thead>
          <tr className="border-line border-y bg-page">
            {columns.map(({ key, header, align }) => (
              <th key={key} scope="col" className={classNames(cellClass(align), 'py-2 font-medium text-muted text-sm')}>
                {header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody className="divide-y divide-line">
          {rows?.map((row) => (
            <TableRow key={rowKey(row)} {...{ row, columns }} />
          ))}
          {rows === undefined && <SkeletonRows count={skeletonRows} columns={columns} />}
        </tbody>
      </table>
    </div>
  );
};

const TableRow = <Row,>({ row, columns }: { readonly row: Row; readonly columns: readonly Column<Row>[] }) => (
  <tr className="hover:bg-page">
    {columns.map(({ key, header, cell, align, isHead, className }) => {
      const look = classNames(cellClass(align), 'sm:py-3', className);
      return isHead === true ? (
        <th key={key} scope="row" data-label={header} className={classNames(look, 'font-medium')}>
          {cell(row)}
        </th>
      ) : (
        <td key={key} data-label={header} className={look}>
          {cell(row)}
        </td>
      );
    })}
  </tr>
);

interface SkeletonRowsProps<Row> {
  readonly count: number;
  readonly columns: readonly Column<Row>[];
}

const SkeletonRows = <Row,>({ count, columns }: SkeletonRowsProps<Row>) =>
  Array.from({ length: count }, (_, index) => (
    <tr key={index}>
      {columns.map(({ key, header, align }) => (
        <td key={key} data-label={header} className={classNames(cellClass(align), 'sm:py-3')}>
          <Skeleton className={classNames('h-[1.375rem] w-24', align === 'end' && 'sm:ml-auto')} />
        </td>
      ))}
    </tr>
  ));

const cellClass = (align: 'start' | 'end' = 'start'): string =>
  classNames('sm:px-4 sm:first:pl-5 sm:last:pr-5', align === 'end' && 'text-right');
