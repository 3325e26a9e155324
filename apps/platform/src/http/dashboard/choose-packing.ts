// In which form a file goes over the wire.
import type { DashboardFile, Packing } from './dashboard-files.ts';

/** null: as it is. The smallest that the caller takes. */
export const choosePacking = (
  accepted: string | undefined,
  { packed }: Pick<DashboardFile, 'packed'>,
): Packing | null => {
  const takes = readAccepted(accepted ?? '');
  for (const packing of packed.keys()) if (takes(packing)) return packing;
  return null;
};

const readAccepted = (header: string): ((packing: Packing) => boolean) => {
  const weights = new Map<string, number>();
  for (const part of header.split(',')) {
    const [name = '', ...params] = part.split(';').map((text) => text.trim().toLowerCase());
    const weight = params.find((param) => param.startsWith('q='));
    weights.set(name, weight === undefined ? 1 : Number(weight.slice(2)) || 0);
  }
  return (packing) => (weights.get(packing) ?? weights.get('*') ?? 0) > 0;
};
