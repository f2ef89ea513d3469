"""What leaders and followers do by themselves."""
