/** Names that requests and answers of Converse share. */

export const dialectId = 'bedrock-converse';

/** Characters of the name of a tool. */
export const maxToolName = 64;
