// Ids of the tables are UUIDs. Anything else is an id of nothing, and never reaches a query, which would refuse it.

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

export const isUuid = (text: string): boolean => UUID.test(text);
