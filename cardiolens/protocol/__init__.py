"""What is asked of a model: tasks, frame selection, prompts, dialogues, and the MedThinkVQA cases."""
