/** Pays orders with unmatched payments: one person alone, or two people above the organization's limit. */
import { z } from "zod";
import { UsageError } from "../command.ts";
import { ServiceError } from "../http/transport.ts";
import { idOf, type Person, print, printJson, required, type Work } from "../person.ts";

export const ATTRIBUTE_HELP = `  npm run recon -- attribute ISSUE --order ID --reason TEXT
      Pays an order with the unmatched payment; above the organization's limit the
      command only proposes it, and another person decides
  npm run recon -- attribute ISSUE --confirm PROPOSAL
  npm run recon -- attribute ISSUE --reject PROPOSAL --reason TEXT
      Decides what another person has proposed
  npm run recon -- attribute ISSUE --withdraw PROPOSAL
      Withdraws what you have proposed
`;
export const ATTRIBUTE_OPTIONS = {
  order: { type: "string" },
  confirm: { type: "string" },
  reject: { type: "string" },
  withdraw: { type: "string" },
} as const;

interface Options {
  readonly order?: string | undefined;
  readonly confirm?: string | undefined;
  readonly reject?: string | undefined;
  readonly withdraw?: string | undefined;
  readonly reason?: string | undefined;
  readonly json?: boolean | undefined;
}

const issueSchema = z.looseObject({
  issue_id: z.int(),
  status: z.string(),
  proposal: z.looseObject({ proposal_id: z.int() }).nullable(),
});
type Issue = z.infer<typeof issueSchema>;

/** Throws `UsageError`. */
export function attribute(issueId: number, options: Options): Work {
  const { order, confirm, reject, withdraw, json } = options;
  if ([order, confirm, reject, withdraw].filter((option) => option !== undefined).length !== 1)
    throw new UsageError("Give one of --order, --confirm, --reject and --withdraw; see --help.");
  const work = workOf(issueId, options);
  return async (operator) => {
    const issue = await work(operator);
    if (json === true) return printJson(issue);
    print(`Issue ${issueId} is ${issue.status}.`);
    if (issue.proposal === null) return;
    const { proposal_id: id } = issue.proposal;
    print(`Proposal ${id} waits for another person: npm run recon -- attribute ${issueId} --confirm ${id}`);
  };
}

function workOf(issueId: number, options: Options): (operator: Person) => Promise<Issue> {
  const { order, confirm, reject, withdraw } = options;
  const path = `issues/${issueId}/proposal/`;
  if (order !== undefined) return attributeOrPropose(issueId, idOf(order, "--order"), options);
  if (confirm !== undefined) {
    const body = { proposal_id: idOf(confirm, "--confirm") };
    return ({ act }) => act(`${path}confirm/`, body, issueSchema);
  }
  if (withdraw !== undefined) {
    const body = { proposal_id: idOf(withdraw, "--withdraw") };
    return ({ act }) => act(`${path}withdraw/`, body, issueSchema);
  }
  const body = { proposal_id: idOf(reject, "--reject"), reason: required(options.reason, "--reason") };
  return ({ act }) => act(`${path}reject/`, body, issueSchema);
}

function attributeOrPropose(issueId: number, orderId: number, options: Options) {
  const body = { order_id: orderId, reason: required(options.reason, "--reason") };
  return async ({ act }: Person): Promise<Issue> => {
    try {
      return await act(`issues/${issueId}/attribute/`, body, issueSchema);
    } catch (error) {
      const isForTwo = error instanceof ServiceError && error.reason === "second_person_needed";
      if (!isForTwo) throw error;
      return await act(`issues/${issueId}/proposal/`, body, issueSchema);
    }
  };
}
