// Texts of records without NUL, which PostgreSQL stores nowhere: one bad name must not hold up a journal for ever.
import type { JournalRecord } from '@tunnel/contract';

const clean = (text: string): string => text.replaceAll('\0', '');

export const withoutNul = (records: readonly JournalRecord[]): JournalRecord[] =>
  records.map((record) => {
    const tunnel_id = clean(record.tunnel_id);
    if (record.kind !== 'opened') return { ...record, tunnel_id };
    return {
      ...record,
      tunnel_id,
      run_id: clean(record.run_id),
      session_id: clean(record.session_id),
      name: clean(record.name),
      label: clean(record.label),
    };
  });
